"""Table files: whole, stable, where they are asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from reports_builder import Planned, write_run

from bench.errors import UserError
from reports.files import replacing
from reports.write import write_tables

FORMATS = ["md", "latex", "csv"]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    cells = [
        Planned(method, seed, (0.8 + seed / 100, 0.5 + offset / 10), variant=variant)
        for variant in ("β=0.1", "β=0.5")
        for offset, method in enumerate(("fedavg", "fedlsa"))
        for seed in range(3)
    ]
    return write_run(tmp_path / "run", cells)


def test_files_are_named_after_the_suite_and_nothing_else_is_left(run_dir: Path) -> None:
    written = write_tables(run_dir, FORMATS)
    assert written == [run_dir / "tables" / f"quickstart{suffix}" for suffix in (".md", ".tex", ".csv")]
    assert sorted((run_dir / "tables").iterdir()) == sorted(written)


def test_all_variants_are_in_one_file_with_one_csv_header(run_dir: Path, tmp_path: Path) -> None:
    markdown, latex, lines = write_tables(run_dir, FORMATS, tmp_path / "out")
    assert markdown.read_text().count("| Method") == 2
    assert latex.read_text().count(r"\begin{tabular}") == 2
    assert r"\label{tab:quickstart-0.1}" in latex.read_text()
    rows = lines.read_text().splitlines()
    assert rows[0] == "variant,method,label,column,mean,std,n"
    assert [row.split(",")[0] for row in rows[1:]] == ["β=0.1"] * 10 + ["β=0.5"] * 10


def test_the_same_records_give_the_same_bytes_in_another_process(run_dir: Path, tmp_path: Path) -> None:
    here = [path.read_bytes() for path in write_tables(run_dir, FORMATS, tmp_path / "here")]
    code = (
        "import sys; from pathlib import Path; from reports.write import write_tables; "
        f"write_tables(Path(sys.argv[1]), {FORMATS}, Path(sys.argv[2]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    there = tmp_path / "there"
    subprocess.run([sys.executable, "-c", code, str(run_dir), str(there)], check=True, env=environment)
    assert here == [(there / f"quickstart{suffix}").read_bytes() for suffix in (".md", ".tex", ".csv")]


def test_an_unknown_format_gets_the_nearest_name_and_writes_nothing(run_dir: Path) -> None:
    with pytest.raises(UserError, match="Unknown table format 'latx': did you mean 'latex'"):
        write_tables(run_dir, ["md", "latx"])
    assert not (run_dir / "tables").exists()


def test_a_place_that_cannot_be_written_to_is_a_plain_error(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(UserError, match="Cannot write"):
        write_tables(run_dir, ["md"], tmp_path / "file")


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
        "import sys, reports.write, reports.figures; "
        "print({'torch', 'ray', 'mlflow', 'matplotlib', 'scipy', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
