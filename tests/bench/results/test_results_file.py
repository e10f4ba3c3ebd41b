"""Results files: what a run becomes in the repository, and what is made from it again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bench
from bench.api.observer import PrintingObserver
from bench.records.reader import load_run
from bench.records.results_file import read_results
from bench.records.round_columns import columns_of, rounds_from
from bench.records.schema import RoundRecord
from bench.results.request import SubmitRequest
from bench.results.submit import Submitted, submit
from reports.frames import frame
from reports.render import to_markdown
from reports.report import Report
from tests.kit.cli import assert_one_sentence, call_bench, read
from tests.kit.without_checksums import without_checksums


def submitted(run: Path, results: Path) -> Submitted:
    return submit(SubmitRequest(str(run), results), PrintingObserver(progress=False))


def test_tables_from_the_file_are_those_of_the_run(tiny_run: Path, results_file: Path) -> None:
    ours, theirs = (Report(run).tables for run in (read_results(results_file), load_run(tiny_run)))
    assert [to_markdown(table) for table in ours] == [to_markdown(table) for table in theirs]


def test_records_from_the_file_are_those_of_the_run(tiny_run: Path, results_file: Path) -> None:
    run, found = load_run(tiny_run), read_results(results_file)
    assert found.partition == run.partition and found.domains == run.domains
    for cell, again in zip(run.cells, found.cells, strict=True):
        assert (again.cell_id, again.label, again.config) == (cell.cell_id, cell.label, cell.config)
        assert (again.tuning, again.settings, again.result) == (cell.tuning, cell.settings, cell.result)
        assert [line.test for line in again.rounds] == [line.test for line in cell.rounds]
        assert [line.bytes_up for line in again.rounds] == [line.bytes_up for line in cell.rounds]
        assert [line.clients for line in again.rounds] == [line.clients for line in cell.rounds]
    assert frame(found).equals(frame(run))


def test_python_and_the_command_line_read_the_file(results_file: Path, tmp_path: Path) -> None:
    assert bench.load(results_file).frame()["accuracy"].notna().all()
    with pytest.raises(bench.UserError, match="say into which folder"):
        bench.load(results_file).write()
    outcome = call_bench("report", results_file, "--out", tmp_path / "report", "--format", "md,html")
    assert outcome.code == 0, outcome
    assert "FedAvg (default)" in (tmp_path / "report" / "tables" / "tiny.md").read_text()
    assert (tmp_path / "report" / "report.html").is_file()


def test_submitting_again_changes_nothing(tiny_run: Path, results_file: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(results_file.parent, tmp_path / "results"))
    done = submitted(tiny_run, folder)
    assert (done.added, done.total) == (0, 6)
    assert done.file.read_bytes() == results_file.read_bytes()


def test_a_file_is_read_once(
    tiny_run: Path, results_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(results_file.parent, tmp_path / "results"))
    read_bytes, seen = Path.read_bytes, []

    def noted(file: Path) -> bytes:
        seen.append(file)
        return read_bytes(file)

    monkeypatch.setattr(Path, "read_bytes", noted)
    submitted(tiny_run, folder)
    assert seen.count(folder / results_file.name) == 1


def test_a_run_with_more_seeds_is_added(tiny_run: Path, results_file: Path, tmp_path: Path) -> None:
    fewer = copied(tiny_run, tmp_path / "fewer")
    edit(fewer / "plan.json", lambda plan: plan.update(cells=[c for c in plan["cells"] if c["seed"] == 0]))
    assert submitted(fewer, tmp_path / "results").total == 3
    done = submitted(tiny_run, tmp_path / "results")
    assert (done.added, done.total) == (3, 6)
    assert done.file.read_bytes() == results_file.read_bytes()


def test_a_file_stays_small(results_file: Path) -> None:
    lines = results_file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 7 and max(map(len, lines)) < 5000


def copied(run: Path, target: Path) -> Path:
    """To be edited."""
    shutil.copytree(run, target)
    without_checksums(target)
    return target


def edit(file: Path, change: Any) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def first_cell(run: Path) -> Path:
    return run / str(read(run / "plan.json")["cells"][0]["dir"])


@pytest.mark.parametrize(
    ("file", "change", "expected"),
    [
        ("config.json", lambda c: c["training"].update(batch_size=11), "the configuration is that of cell"),
        ("result.json", lambda r: r["final"].update(avg=0.5), "avg is 0.5"),
        ("result.json", lambda r: r.update(bytes_up=1), "bytes_up is 1"),
        ("result.json", lambda r: r["provenance"].update(commit="0123456789ab+"), "code beyond commit"),
        ("result.json", lambda r: r["provenance"].update(commit=""), "its commit is unknown"),
        ("result.json", lambda r: r["provenance"].update(versions={}), "its provenance lacks versions"),
        ("result.json", lambda r: r["provenance"].update(contract="failed"), "has not passed `bench check`"),
    ],
)
def test_what_a_result_must_have(
    tiny_run: Path, tmp_path: Path, file: str, change: Any, expected: str
) -> None:
    run = copied(tiny_run, tmp_path / "run")
    edit(first_cell(run) / file, change)
    outcome = call_bench("submit", run, "--results", tmp_path / "results")
    assert_one_sentence(outcome, "cannot be submitted: FedAvg seed 0: ", expected)
    assert not (tmp_path / "results").exists()


def test_code_that_is_not_committed_can_be_forced(tiny_run: Path, tmp_path: Path) -> None:
    run = copied(tiny_run, tmp_path / "run")
    edit(first_cell(run) / "result.json", lambda result: result["provenance"].update(commit="0123456789ab+"))
    outcome = call_bench("submit", run, "--results", tmp_path / "results", "--force")
    assert outcome.code == 0 and "tiny.jsonl: 6 cells added, 6 in all" in outcome.out


def test_an_unfinished_run_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    run = copied(tiny_run, tmp_path / "run")
    (first_cell(run) / "result.json").unlink()
    assert_one_sentence(call_bench("submit", run, "--results", tmp_path / "results"), "1 cell not finished")


def test_other_accuracies_of_the_same_cell_are_refused(
    tiny_run: Path, results_file: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(results_file.parent, tmp_path / "results"))
    run = copied(tiny_run, tmp_path / "run")
    rounds = first_cell(run) / "rounds.jsonl"
    lines = [json.loads(line) for line in rounds.read_text().splitlines()]
    lines[0]["clients"] = 3
    rounds.write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused = call_bench("submit", run, "--results", folder)
    assert_one_sentence(refused, "FedAvg seed 0 has other accuracies", "--replace")
    assert call_bench("submit", run, "--results", folder, "--replace").code == 0
    assert read_results(folder / "tiny.jsonl").cells[0].rounds[0].clients == 3


def test_rounds_come_back_from_columns() -> None:
    rounds = [
        RoundRecord(round=0, bytes_up=7, bytes_down=9, clients=4),
        RoundRecord(round=1, bytes_up=5, bytes_down=9, clients=4),
        RoundRecord(round=2, test={"a": 1 / 3, "b": 0.25}, personal=0.5, bytes_up=5, bytes_down=9, clients=4),
        RoundRecord(round=4, test={"a": 2 / 3, "b": 0.5}, bytes_up=5, bytes_down=9, clients=4, dropped=1),
    ]
    columns = json.loads(json.dumps(columns_of(rounds)))
    assert rounds_from(columns) == rounds
    assert columns["bytes_down"] == 9 and columns["round"] == [0, 1, 2, 4]
    assert columns["test"]["accuracy"] == {"a": [1 / 3, 2 / 3], "b": [0.25, 0.5]}


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (0, "{}", "is damaged at line 1 (suite: Field required)"),
        (1, '{"cell": "x"', "is damaged at line 2"),
        (2, "{}", "is damaged at line 3"),
    ],
)
def test_damage_is_named(results_file: Path, tmp_path: Path, number: int, text: str, expected: str) -> None:
    lines = results_file.read_text(encoding="utf-8").splitlines()
    lines[number] = text
    file = tmp_path / "tiny.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert_one_sentence(call_bench("report", file), expected)
