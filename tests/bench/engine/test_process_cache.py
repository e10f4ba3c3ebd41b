"""What a process keeps from one cell for the next, and that later cells do not differ for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from bench.engine import process_cache
from bench.engine.cell_stack import CellStack
from bench.engine.conditions import Conditions
from bench.engine.process_cache import ProcessCache
from bench.engine.shared_preludes import SharedPreludes
from bench.suite.planning import PlannedCell
from methods.wrappers.ggeur import exchanges
from tests.kit.cell_stacks import alone, assert_same, cells_of, placed, records

MADE = {"step1_samples": 20, "step2_samples": 10}
STACKED = Conditions(executor="stacked")
ON_EMBEDDINGS = {"model": {"name": "head"}, "encoder": "pixels"}


@pytest.fixture
def assembled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of cells whose data were read, from now on."""
    found: list[str] = []
    real = process_cache.assemble_under

    def noted(conditions: Any, config: Any) -> Any:
        found.append(config.method.name)
        return real(conditions, config)

    monkeypatch.setattr(process_cache, "assemble_under", noted)
    return found


@pytest.fixture
def statistics(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry per client that computes its moments for GGEUR, from now on."""
    found: list[int] = []
    real = exchanges.moments

    def counted(*inputs: Any) -> Any:
        found.append(1)
        return real(*inputs)

    monkeypatch.setattr(exchanges, "moments", counted)
    return found


def run_in_turn(folder: Path, cells: list[PlannedCell], kept: ProcessCache) -> None:
    """One stack after the other."""
    for cell in placed(folder, cells):
        kept.keep_for([cell[1]])
        stack = CellStack([cell], STACKED, kept)
        while stack.running:
            stack.advance()
        assert stack.failed == {}


def test_methods_in_turn_use_the_same_data_and_first_exchanges(
    tmp_path: Path, assembled: list[str], statistics: list[int]
) -> None:
    rows = [
        "fedavg",
        {"name": "ggeur+fedavg", "set": MADE},
        {"name": "ggeur+fedprox", "set": MADE},
        {"name": "ggeur+fedavg", "label": "few axes", "set": {**MADE, "top_k": 2}},
        "scaffold",
    ]
    cells = cells_of(tmp_path, rows, **ON_EMBEDDINGS)
    run_in_turn(tmp_path / "kept", cells, ProcessCache())
    assert assembled == ["fedavg"]
    clients = len(statistics)
    alone(tmp_path / "alone", cells)
    assert len(statistics) == 4 * clients  # once with the process_cache, and once for each of three cells
    for cell in cells:
        assert_same(records(tmp_path / "kept", cell), records(tmp_path / "alone", cell))


def test_a_method_with_all_data_in_one_place_has_data_of_its_own(
    tmp_path: Path, assembled: list[str]
) -> None:
    cells = cells_of(tmp_path, ["fedavg", "central", "fedprox"])
    kept = ProcessCache()
    kept.keep_for([cell.config for cell in cells])
    problems = {cell.config.method.name: kept.assembled(cell.config, STACKED).problem for cell in cells}
    assert assembled == ["fedavg", "central"]
    assert len(problems["central"].train) == 1 < len(problems["fedprox"].train)


def test_data_are_let_go_before_others_are_read(tmp_path: Path, assembled: list[str]) -> None:
    one, two = cells_of(tmp_path, ["fedavg"], seeds=2)
    kept = ProcessCache()
    for wanted, reads in [(one, 1), (one, 1), (two, 2), (one, 3)]:
        kept.keep_for([wanted.config])
        kept.assembled(wanted.config, STACKED)
        assert len(assembled) == reads


def test_exchanges_that_led_to_much_are_not_kept(tmp_path: Path, statistics: list[int]) -> None:
    rows = [
        {"name": "ggeur+fedavg", "set": MADE},
        {"name": "ggeur+fedavg", "label": "again", "set": {**MADE, "top_k": 2}},
    ]
    cells = cells_of(tmp_path, rows, **ON_EMBEDDINGS)
    kept = ProcessCache()
    kept.preludes = SharedPreludes(most_bytes=100)
    run_in_turn(tmp_path / "kept", cells[:1], kept)
    clients = len(statistics)
    run_in_turn(tmp_path / "kept", cells[1:], kept)
    assert len(statistics) == 2 * clients


def test_a_model_is_the_same_after_cells_have_trained_it(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, ["fedavg", "fedprox"])
    kept = ProcessCache()
    before = kept.assembled(cells[0].config, STACKED).problem.task.initial.map(torch.clone)
    run_in_turn(tmp_path, cells[:1], kept)
    after = kept.assembled(cells[1].config, STACKED).problem.task.initial
    assert all(torch.equal(before[name], after[name]) for name in before)
