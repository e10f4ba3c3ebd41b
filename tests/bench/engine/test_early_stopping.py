"""Early stopping by validation: which round counts, when a run ends, and what its records say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.predictions import read_predictions
from bench.records.reader import CellRecord, Run
from bench.records.schema import SuiteRecord, TableRecord
from bench.records.selection import best_round
from bench.results.consistency import inconsistencies
from bench.suite.loading import load_suite
from bench.suite.model import Suite
from bench.suite.planning import PlannedCell, plan_cells
from reports.numbers.scores import rows_of
from reports.tables.caption import caption
from tests.kit.cli import TINY, write_suite
from tests.kit.tune import one_search

ROUNDS = 30


def suite_with(folder: Path, **training: Any) -> Suite:
    changed = TINY["training"] | {"rounds": ROUNDS, "validation": 0.3, **training}
    file = write_suite(folder, training=changed, evaluation={"every": 1}, methods=["fedavg"], seeds=1)
    return load_suite(str(file))


def advanced(folder: CellFolder, cell: PlannedCell, rounds: int = ROUNDS, often: float = 0.0) -> CellRun:
    run = CellRun(folder, cell.config, Conditions(checkpoint_seconds=often))
    while not run.done and run.rounds_done < rounds:
        run.advance()
    return run


def without_timing(folder: CellFolder) -> list[dict[str, Any]]:
    lines = map(json.loads, folder.rounds_file.read_text().splitlines())
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def test_the_best_round_is_the_first_that_none_surpasses() -> None:
    measured = {2: 0.5, 4: 0.7, 6: 0.6, 8: 0.7, 10: 0.72}
    best = best_round(measured, 0.0)
    assert best is not None and (best.round, best.since) == (10, 0)
    best = best_round(measured, 0.05)
    assert best is not None and (best.round, best.since) == (4, 3)
    assert best_round({}, 0.0) is None


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlannedCell, CellFolder]:
    folder = tmp_path_factory.mktemp("stopped")
    (cell,) = plan_cells(suite_with(folder, early_stop={"patience": 3}))
    advanced(CellFolder(folder / "cell"), cell)
    return cell, CellFolder(folder / "cell")


def test_the_result_is_that_of_the_best_round(stopped: tuple[PlannedCell, CellFolder]) -> None:
    _, folder = stopped
    result, rounds = folder.result(), folder.rounds()
    assert result is not None and result.selected is not None
    chosen = result.selected.round
    judged = {line.round: line.validation or 0.0 for line in rounds}
    assert chosen == min(number for number, value in judged.items() if value == max(judged.values()))
    assert result.rounds == len(rounds) == chosen + 3 < ROUNDS
    assert result.selected.reason == f"no better validation accuracy in 3 measurements after round {chosen}"
    assert result.final.test == rounds[chosen - 1].test != rounds[-1].test
    predictions = read_predictions(folder.predictions)
    for domain, accuracy in (result.final.test or {}).items():
        assert np.mean(predictions.correctness(domain)) == pytest.approx(accuracy)


def test_what_comes_before_the_stop_is_the_run_without_it(
    stopped: tuple[PlannedCell, CellFolder], tmp_path: Path
) -> None:
    _, folder = stopped
    (cell,) = plan_cells(suite_with(tmp_path))
    advanced(CellFolder(tmp_path / "cell"), cell, rounds=len(folder.rounds()))
    assert without_timing(CellFolder(tmp_path / "cell")) == without_timing(folder)


def test_an_interrupted_run_ends_the_same(stopped: tuple[PlannedCell, CellFolder], tmp_path: Path) -> None:
    cell, folder = stopped
    first = folder.result()
    assert first is not None and first.selected is not None
    again = CellFolder(tmp_path / "cell")
    advanced(again, cell, rounds=first.selected.round + 1)  # after the best round, before the stop
    advanced(again, cell)
    second = again.result()
    assert second is not None and without_timing(again) == without_timing(folder)
    assert (second.selected, second.final) == (first.selected, first.final)
    assert again.predictions.read_bytes() == folder.predictions.read_bytes()


def test_tables_and_checks_know_the_chosen_round(stopped: tuple[PlannedCell, CellFolder]) -> None:
    cell, folder = stopped
    result = folder.result()
    assert result is not None and result.selected is not None
    domains = tuple(result.final.test or {})
    record = CellRecord(cell.cell_id, "fedavg", "FedAvg", "", 0, cell.config, folder.rounds(), result, None)
    assert inconsistencies(record) == []
    run = Run(
        (folder.path,), SuiteRecord(name="t", version=1), TableRecord(kind="domains"), domains, (record,)
    )
    text, notes = caption(run, "", rows_of(run, ""))
    assert "selection: best round on validation" in text
    assert "rounds: at most 30, stopped after 3 measurements without a better one" in text
    assert f"FedAvg {result.selected.round} of {result.rounds}" in " ".join(note.text for note in notes)
    wrong = result.model_copy(update={"selected": result.selected.model_copy(update={"round": 1})})
    assert inconsistencies(
        CellRecord(cell.cell_id, "fedavg", "FedAvg", "", 0, cell.config, folder.rounds(), wrong, None)
    )


def test_a_run_that_always_improves_takes_the_best_of_all_rounds(tmp_path: Path) -> None:
    (cell,) = plan_cells(suite_with(tmp_path, rounds=3, early_stop={"patience": 9}))
    folder = CellFolder(tmp_path / "cell")
    advanced(folder, cell)
    result = folder.result()
    assert result is not None and result.selected is not None
    assert result.rounds == 3 and result.selected.reason == "all rounds were run"


def test_early_stopping_needs_validation_and_is_no_part_of_a_search(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="early_stop needs held-out samples"):
        suite_with(tmp_path, validation=0.0, early_stop={"patience": 3})
    suite = suite_with(tmp_path, early_stop={"patience": 3})
    search = one_search(suite, "fedavg", "wide", "random", "none", 0, tmp_path)
    assert search.suite.training.early_stop is None
    (cell,) = plan_cells(suite)
    assert search.cells({})[0].config.setting == cell.config.setting
