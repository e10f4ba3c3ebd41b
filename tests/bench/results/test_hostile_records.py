"""Run folders and results files from strangers: shown in tables and pages, or refused in a sentence."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.api.observer import QUIET
from bench.errors import UserError
from bench.records.reader import Run, load_run
from bench.records.results_file import read_results
from bench.results.request import SubmitRequest, VerifyRequest
from bench.results.submit import submit
from bench.results.verify import verify
from reports.combine.compare import compare_runs
from reports.combine.merge import merge_runs
from reports.frames import curves, frame
from reports.page import write_page
from reports.render.files import write_tables
from reports.report import Report
from tests.kit.hostile import FUZZ, damaged, damaged_bytes, no_write_outside, outcome

PARTITION = {
    "setting": "seed 0",
    "classes": ["0", "1"],
    "clients": [{"name": "0", "domain": "mnist", "counts": [3, 4]}],
}
TABLES = (
    {"kind": "domains"},
    {"kind": "variants"},
    {"kind": "ablation", "switches": {"mu": "Proximal"}},
    {"kind": "wrapped", "wrapper": "ggeur"},
    {"kind": "unseen"},
)
FILES = ("plan.json", "partition.json", "config.json", "result.json", "rounds.jsonl", "error.json")


def show(run: Run, target: Path) -> None:
    """All that reports do with a run, but for drawing the figures, which takes seconds."""
    report = Report(run)
    report.check()
    write_tables(report.tables, run.suite.name, ("md", "latex", "csv"), target / "tables")
    write_page(run, report.tables, target)
    merge_runs([run, run])
    compare_runs(run, run)
    frame(run)
    curves(run)


def changed_file(run: Path, name: str) -> Path:
    """The file of this name: the run's own, or that of its first cell."""
    first = run / json.loads((run / "plan.json").read_text())["cells"][0]["dir"]
    return run / name if name in ("plan.json", "partition.json") else first / name


def lines_of(file: Path) -> list[Any]:
    text = file.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]


def as_text(contents: Any) -> bytes:
    lines = contents if isinstance(contents, list) else [contents]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def in_a_copy(
    source: Path, kind: str, damage: Callable[[Path], object], act: Callable[[Path, Path], object]
) -> str:
    """What becomes of a damaged copy of the run or file; only a folder beside it may be written to."""
    with tempfile.TemporaryDirectory() as folder:
        copied, target = Path(folder, source.name), Path(folder, "target")
        if source.is_dir():
            shutil.copytree(source, copied)
            (copied / "partition.json").write_text(json.dumps(PARTITION))
        else:
            shutil.copy(source, copied)
        damage(copied)
        with no_write_outside(target):
            return outcome(lambda: act(copied, target), kind)


def open_run(run: Path, target: Path) -> None:
    show(load_run(run), target)
    with suppress(UserError):  # nearly all damage contradicts the rest of the records
        submit(SubmitRequest(str(run), target / "results", force=True), QUIET)


def open_results(file: Path, target: Path) -> None:
    verify(VerifyRequest(file, cells=0), QUIET)
    show(read_results(file), target)


@FUZZ
@given(data=st.data(), name=st.sampled_from(FILES))
def test_damaged_run_folders(tiny_run: Path, data: st.DataObject, name: str) -> None:
    def damage(run: Path) -> None:
        file = changed_file(run, name)
        if name == "error.json":
            changed_file(run, "result.json").unlink()
            file.write_text(json.dumps({"error": "why", "traceback": "where"}))
        plan = json.loads((run / "plan.json").read_text())
        plan["table"] = data.draw(st.sampled_from(TABLES))
        (run / "plan.json").write_text(json.dumps(plan))
        file.write_bytes(as_text(data.draw(damaged(lines_of(file)))))

    in_a_copy(tiny_run, "damaged run folders", damage, open_run)


@FUZZ
@given(data=st.data())
def test_damaged_results_files(results_file: Path, data: st.DataObject) -> None:
    def damage(file: Path) -> None:
        header, *lines = lines_of(file)
        header["table"] = data.draw(st.sampled_from(TABLES))
        file.write_bytes(as_text(data.draw(damaged([header, *lines]))))

    in_a_copy(results_file, "damaged results files", damage, open_results)


@FUZZ
@given(data=st.data(), name=st.sampled_from((*FILES[:-1], "predictions.npz")))
def test_damaged_bytes(tiny_run: Path, data: st.DataObject, name: str) -> None:
    def damage(run: Path) -> None:
        file = changed_file(run, name)
        file.write_bytes(data.draw(damaged_bytes(file.read_bytes())))

    in_a_copy(tiny_run, "run folders with damaged bytes", damage, open_run)


def test_the_undamaged_ones_are_read(tiny_run: Path, results_file: Path) -> None:
    """So that the tests above do not pass because everything is refused."""
    assert in_a_copy(tiny_run, "undamaged", str, open_run) == "read"
    assert in_a_copy(results_file, "undamaged", str, open_results) == "read"
