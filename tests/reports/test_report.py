"""The report of a run as a whole: what it writes, when it refuses, and what it can do without."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UserError
from bench.records.reader import load_run
from reports.combine.merge import merge_runs
from reports.report import FORMATS, RankingReport, Report
from tests.kit.page import write_five_methods
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, seeds

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked")

sys.meta_path.insert(0, Blocker())
"""
"""Program text that makes every import of certain packages fail."""


def python(program: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def names(files: list[Path], folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in files}


def three_methods(path: Path, suite: str) -> Path:
    cells = [*seeds("fedavg", FEDAVG, dataset=suite), *seeds("fedprox", FEDPROX, dataset=suite)]
    return write_run(path, [*cells, *seeds("fedlsa", FEDLSA, dataset=suite)], suite=suite)


def test_a_report_goes_into_the_folder_of_its_run(tmp_path: Path) -> None:
    report = Report(load_run(write_five_methods(tmp_path / "run")))
    files = report.write()
    assert names(files, tmp_path / "run") == {
        *(f"tables/quickstart{suffix}" for suffix in (".md", ".tex", ".csv")),
        *(
            f"figures/{name}.{suffix}"
            for name in ("convergence", "accuracy_bytes", "partition")
            for suffix in ("png", "pdf")
        ),
        "report.html",
    }
    assert all(file.is_file() for file in files)


def test_tables_are_computed_once(tmp_path: Path) -> None:
    report = Report(load_run(three_methods(tmp_path, "digits")))
    assert report.tables is report.tables
    assert [table.name for table in report.tables] == ["accuracy", "statistics", "selection"]


def test_formats_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    report = Report(load_run(three_methods(tmp_path / "run", "digits")))
    with pytest.raises(UserError, match="no format is given; choose one or more of md, latex, csv, html"):
        report.write([])
    with pytest.raises(UserError, match="did you mean 'html'"):
        report.write(["md", "htm"])
    assert not (tmp_path / "run" / "tables").exists()


def test_damaged_records_are_found_before_anything_is_written(tmp_path: Path) -> None:
    cell = Planned("fedlsa", 0, (0.5, 0.5))
    run = write_run(tmp_path, [cell])
    (run / cell.dir / "projection.npz").write_text("no archive")
    with pytest.raises(UserError, match=r"projection\.npz cannot be read"):
        Report(load_run(run)).write(["md"])
    assert not (run / "tables").exists()


def test_merged_runs_keep_their_partition_and_projections_and_need_a_folder(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", seeds("fedavg", FEDAVG))
    cells = seeds("fedlsa", FEDLSA)
    second = write_run(tmp_path / "b", cells)
    write_five_methods(tmp_path / "c")
    (tmp_path / "c" / "partition.json").rename(second / "partition.json")
    np.savez(
        second / cells[0].dir / "projection.npz",
        points=np.arange(6.0).reshape(3, 2),
        labels=np.zeros(3),
        anchors=np.eye(2),
    )
    (merged,) = merge_runs([load_run(first), load_run(second)])
    with pytest.raises(UserError, match="no folder in common; say where"):
        Report(merged).write()
    files = names(Report(merged).write(["csv"], tmp_path / "out"), tmp_path / "out")
    assert {"figures/partition.png", "figures/projection_fedlsa_s0.png"} <= files
    assert "report.html" not in files


DIAGRAMS = ("critical_difference", "performance_profile")


def test_a_ranking_over_runs_has_a_table_a_page_and_a_diagram(tmp_path: Path) -> None:
    runs = [load_run(three_methods(tmp_path / suite, suite)) for suite in ("digits", "pacs")]
    files = names(RankingReport(runs).write(FORMATS, tmp_path / "out"), tmp_path / "out")
    figures = {f"figures/{name}.{kind}" for name in DIAGRAMS for kind in ("png", "pdf")}
    assert files == {f"tables/ranking{suffix}" for suffix in (".md", ".tex", ".csv", ".html")} | figures
    assert RankingReport(runs[:1]).table is None and RankingReport(runs[:1]).write(FORMATS, tmp_path) == []


def test_a_whole_report_needs_neither_torch_nor_ray_nor_mlflow(tmp_path: Path) -> None:
    run = write_five_methods(tmp_path / "run")
    program = WITHOUT.format(blocked=("torch", "torchvision", "ray", "mlflow")) + (
        "from pathlib import Path\n"
        "from bench.records.reader import load_run\n"
        "from reports.frames import curves, frame\n"
        "from reports.report import FORMATS, Report\n"
        "report = Report(load_run(Path(sys.argv[1])))\n"
        "files = report.write(FORMATS, Path(sys.argv[2]))\n"
        "print(len(files), len(frame(report.run)), len(curves(report.run)))\n"
    )
    done = python(program, run, tmp_path / "out")
    assert (done.stdout, done.stderr) == ("10 30 150\n", "")
    assert (tmp_path / "out" / "report.html").read_bytes() == Report(load_run(run)).write(
        ["html"], tmp_path / "again"
    )[-1].read_bytes()


def test_the_blocker_of_these_tests_blocks() -> None:
    done = python(WITHOUT.format(blocked=("torch",)) + "import torch")
    assert done.returncode == 1 and "torch is blocked" in done.stderr


def test_the_command_works_without_torch(tmp_path: Path) -> None:
    run = three_methods(tmp_path / "run", "digits")
    program = WITHOUT.format(blocked=("torch", "torchvision", "ray")) + (
        "from bench.cli.app import main\nsys.argv[1:1] = ['report']\nmain()\n"
    )
    done = python(program, run)
    assert done.returncode == 0, done.stderr
    assert (run / "report.html").is_file() and "FedLSA" in done.stdout


def test_libraries_that_take_long_to_import_wait_until_they_are_needed() -> None:
    program = (
        "import sys, reports.report, reports.frames, reports.combine.merge, reports.combine.compare\n"
        "heavy = {'torch', 'ray', 'mlflow', 'matplotlib', 'scipy', 'numpy', 'pandas'}\n"
        "print(heavy & sys.modules.keys())"
    )
    assert python(program).stdout.strip() == "set()"
