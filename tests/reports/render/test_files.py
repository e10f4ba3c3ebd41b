"""Table files: whole, stable, where they are asked for."""

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records.files import replacing
from bench.records.reader import load_run
from reports.render.files import write_tables
from reports.tables.kinds import tables_of
from tests.kit.run_folders import Planned, write_run

FORMATS = ["md", "latex", "csv"]


def write(run_dir: Path, formats: list[str], folder: Path) -> list[Path]:
    return write_tables(tables_of(load_run(run_dir)), "quickstart", formats, folder)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    cells = [
        Planned(method, seed, (0.8 + seed / 100, 0.5 + offset / 10), variant=variant)
        for variant in ("β=0.1", "β=0.5")
        for offset, method in enumerate(("fedavg", "fedlsa"))
        for seed in range(3)
    ]
    return write_run(tmp_path / "run", cells)


def test_files_have_the_name_asked_for_and_nothing_else_is_left(run_dir: Path) -> None:
    folder = run_dir / "tables"
    written = write(run_dir, FORMATS, folder)
    assert written == [folder / f"quickstart{suffix}" for suffix in (".md", ".tex", ".csv")]
    assert sorted(folder.iterdir()) == sorted(written)


def test_all_variants_are_in_one_file_with_one_csv_header(run_dir: Path, tmp_path: Path) -> None:
    markdown, latex, lines = write(run_dir, FORMATS, tmp_path / "out")
    assert markdown.read_text().count("| Method") == 6  # three tables for each of two variants
    labels = re.findall(r"\\label{(.*)}", latex.read_text())
    kinds = ("0.1", "0.5", "0.1-statistics", "0.5-statistics", "0.1-selection", "0.5-selection")
    assert labels == [f"tab:quickstart-{kind}" for kind in kinds]
    rows = list(csv.DictReader(io.StringIO(lines.read_text())))
    accuracies = [row["variant"] for row in rows if row["table"] == "accuracy"]
    assert accuracies == ["β=0.1"] * 10 + ["β=0.5"] * 10
    assert lines.read_text().count("variant") == 1


def test_the_same_records_give_the_same_bytes_in_another_process(run_dir: Path, tmp_path: Path) -> None:
    here = [path.read_bytes() for path in write(run_dir, FORMATS, tmp_path / "here")]
    code = (
        "import sys; from pathlib import Path; from bench.records.reader import load_run; "
        "from reports.tables.kinds import tables_of; from reports.render.files import write_tables; "
        "tables = tables_of(load_run(Path(sys.argv[1]))); "
        f"write_tables(tables, 'quickstart', {FORMATS}, Path(sys.argv[2]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    there = tmp_path / "there"
    subprocess.run([sys.executable, "-c", code, str(run_dir), str(there)], check=True, env=environment)
    assert here == [(there / f"quickstart{suffix}").read_bytes() for suffix in (".md", ".tex", ".csv")]


def test_an_unknown_format_gets_the_nearest_name_and_writes_nothing(run_dir: Path) -> None:
    with pytest.raises(UserError, match="unknown format 'latx'; did you mean 'latex'"):
        write(run_dir, ["md", "latx"], run_dir / "tables")
    assert not (run_dir / "tables").exists()


def test_a_place_that_cannot_be_written_to_is_a_plain_error(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UserError, match="cannot write"):
        write(run_dir, ["md"], tmp_path / "file")


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_reports_load_without_the_heavy_libraries() -> None:
    code = (
        "import sys, reports.render.files, reports.tables.kinds, reports.combine.merge; "
        "import reports.combine.compare, reports.tables.rank_table; "
        "print({'torch', 'ray', 'mlflow', 'matplotlib', 'scipy', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
