"""Reading run directories, whole and damaged."""

import json
import math
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records.reader import load_run
from tests.kit.run_folders import Planned, write_run


def edit_json(file: Path, **changes: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_everything_written_is_read_back_in_the_order_of_the_plan(tmp_path: Path) -> None:
    cells = [
        Planned("fedlsa", 1, [0.9, 0.5], personal=0.7, curve={0: [0.1, 0.1], 5: [0.9, 0.5]}),
        Planned("fedavg", 0, [0.8, 0.4], variant="β=0.1"),
    ]
    run = load_run(write_run(tmp_path, cells, tuning={"trials": 40}))
    assert (run.suite.name, run.suite.version, run.kind) == ("quickstart", 1, "domains")
    assert run.domains == ("mnist", "fonts")
    assert [cell.tuning for cell in run.cells] == [{"trials": 40}] * 2
    assert (run.sources, run.name) == ((tmp_path,), str(tmp_path))
    assert run.variants == ("", "β=0.1")
    first, second = run.cells
    assert (first.method, first.label, first.seed, first.personal) == ("fedlsa", "FedLSA", 1, 0.7)
    assert [line.round for line in first.rounds] == [0, 5]
    assert first.config is not None and first.config.method.name == "fedlsa"
    assert (second.accuracy("mnist"), second.accuracy("fonts")) == (0.8, 0.4)
    assert second.error is None and second.personal is None


def test_a_cell_without_a_directory_is_planned_but_empty(tmp_path: Path) -> None:
    (cell,) = load_run(write_run(tmp_path, [Planned("fedavg", 0)])).cells
    assert (cell.config, cell.rounds, cell.result, cell.error) == (None, [], None, None)
    assert cell.accuracy("mnist") is None


@pytest.mark.parametrize(
    "rest", [b'{"round": 2, "test": {"mn', b'{"round": 2, "note": "\xce', b"\x00\x00\x00\n"]
)
def test_a_truncated_last_line_is_left_out(tmp_path: Path, rest: bytes) -> None:
    planned = Planned("fedavg", 0, curve={0: [0.1, 0.1], 1: [0.2, 0.2]})
    write_run(tmp_path, [planned])
    with (tmp_path / planned.dir / "rounds.jsonl").open("ab") as file:
        file.write(rest)
    (cell,) = load_run(tmp_path).cells
    assert [line.round for line in cell.rounds] == [0, 1]


def test_damage_before_the_last_line_is_reported_with_its_place(tmp_path: Path) -> None:
    planned = Planned("fedavg", 0, curve={0: [0.1, 0.1], 1: [0.2, 0.2]})
    write_run(tmp_path, [planned])
    file = tmp_path / planned.dir / "rounds.jsonl"
    file.write_text("{oops\n" + file.read_text())
    with pytest.raises(UserError, match=r"rounds\.jsonl is damaged at line 1"):
        load_run(tmp_path)


def test_a_round_done_again_after_a_restart_counts_once(tmp_path: Path) -> None:
    planned = Planned("fedavg", 0, curve={0: [0.1, 0.1], 1: [0.2, 0.2]})
    write_run(tmp_path, [planned])
    with (tmp_path / planned.dir / "rounds.jsonl").open("a") as file:
        file.write('{"round": 1, "test": {"mnist": 0.3, "fonts": 0.3}}\n{"round": 2}\n')
    (cell,) = load_run(tmp_path).cells
    assert [line.round for line in cell.rounds] == [0, 1, 2]
    assert cell.rounds[1].test == {"mnist": 0.3, "fonts": 0.3}


def test_values_that_are_not_finite_are_missing(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, [math.nan, 0.4], personal=math.inf)]
    (cell,) = load_run(write_run(tmp_path, cells)).cells
    assert cell.accuracy("mnist") is None
    assert cell.accuracy("fonts") == 0.4
    assert cell.personal is None


def test_an_error_is_one_printable_line_and_gone_once_the_cell_is_done(tmp_path: Path) -> None:
    cells = [
        Planned("fedavg", 0, error="\x1b[31mout of memory\nsecond line"),
        Planned("fedavg", 1, [0.8, 0.4], error="an earlier attempt"),
    ]
    failed, done = load_run(write_run(tmp_path, cells)).cells
    assert failed.error == "[31mout of memory"
    assert done.error is None


def test_no_plan_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no plan\.json in .*bench run --suite"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["plan.json", "config.json", "result.json"])
def test_an_unknown_schema_is_refused(tmp_path: Path, name: str) -> None:
    planned = Planned("fedavg", 0, [0.8, 0.4])
    write_run(tmp_path, [planned])
    edit_json(tmp_path / ("" if name == "plan.json" else planned.dir) / name, schema=2)
    with pytest.raises(UserError, match=rf"{name} has schema 2, but this version reads schema 1"):
        load_run(tmp_path)


def test_a_result_of_another_cell_is_refused(tmp_path: Path) -> None:
    planned = Planned("fedavg", 0, [0.8, 0.4])
    write_run(tmp_path, [planned])
    edit_json(tmp_path / planned.dir / "result.json", cell="0" * 16)
    with pytest.raises(UserError, match="belongs to cell 0000"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("final", "said"),
    [
        (None, r"is damaged \(final: "),
        ({}, r"has no final\.test"),
        ({"test": 0.5}, r"is damaged \(final\.test: "),
    ],
)
def test_a_result_without_test_accuracies_is_refused(tmp_path: Path, final: object, said: str) -> None:
    planned = Planned("fedavg", 0, [0.8, 0.4])
    write_run(tmp_path, [planned])
    edit_json(tmp_path / planned.dir / "result.json", final=final)
    with pytest.raises(UserError, match=rf"result\.json {said}"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"method": None}, "method"),
        ({"method": {"name": "fedavg", "version": 1}}, r"method\.hyperparameters"),
        ({"training": {"rounds": 5}}, r"training\.batch_size"),
        ({"seeds": 3}, "seeds"),
    ],
)
def test_a_configuration_that_is_not_whole_is_refused_with_the_key(
    tmp_path: Path, changes: dict[str, object], lost: str
) -> None:
    planned = Planned("fedavg", 0, [0.8, 0.4])
    write_run(tmp_path, [planned])
    edit_json(tmp_path / planned.dir / "config.json", **changes)
    with pytest.raises(
        UserError, match=rf"config\.json is damaged \({lost}: .*; delete the folder .* and run"
    ):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": []}, "plans no cells"),
        ({"cells": [{"method": "fedavg"}]}, r"is damaged \(cells\.0\.cell: Field required\)"),
        ({"table": None}, r"is damaged \(table: .*; run the suite again"),
    ],
)
def test_a_plan_that_cannot_be_used_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    write_run(tmp_path, [Planned("fedavg", 0)])
    edit_json(tmp_path / "plan.json", **changes)
    with pytest.raises(UserError, match=message):
        load_run(tmp_path)


def test_a_seed_planned_twice_is_refused_rather_than_counted_twice(tmp_path: Path) -> None:
    write_run(tmp_path, [Planned("fedavg", 0), Planned("fedavg", 0)])
    with pytest.raises(UserError, match="FedAvg seed 0 2 times"):
        load_run(tmp_path)


def test_broken_json_names_the_file(tmp_path: Path) -> None:
    write_run(tmp_path, [Planned("fedavg", 0)])
    (tmp_path / "plan.json").write_text('{"schema": 1')
    with pytest.raises(UserError, match=r"plan\.json is not valid JSON"):
        load_run(tmp_path)
