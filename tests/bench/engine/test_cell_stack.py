"""Cells that are trained together in one process: as if each had run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.engine.cell import CellRun
from bench.engine.cell_stack import CellStack
from bench.engine.clock import Clock
from bench.engine.conditions import Conditions
from bench.engine.executors import cells_at_once
from bench.records.cell_folder import CellFolder
from bench.suite.methods import METHODS
from bench.suite.planning import PlannedCell
from bench.trials.bundles import stacks
from tests.kit.cell_stacks import (
    ROUNDS,
    Choosy,
    ReadsSeed,
    alone,
    assert_same,
    cells_of,
    count_joint_calls,
    placed,
    records,
    run_together,
)


def prox(mu: float, lr: float) -> dict[str, Any]:
    changes = {"mu": mu, "optimiser": {"name": "sgd", "lr": lr}}
    return {"name": "fedprox", "label": f"{mu} {lr}", "set": changes}


def stacked_with(folder: Path, cell: PlannedCell) -> int | None:
    result = CellFolder(folder / cell.cell_id).result()
    return None if result is None else result.timing.stacked_with


ROWS = [prox(0.0, 0.05), prox(0.1, 0.05), prox(0.5, 0.02), prox(0.1, 0.1)]


@pytest.fixture(scope="module")
def by_itself(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where cells are that ran alone; several tests compare with the same ones."""
    return tmp_path_factory.mktemp("alone")


@pytest.fixture
def joint_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_joint_calls(monkeypatch)


def test_a_stack_leaves_the_records_of_cells_that_ran_alone(
    tmp_path: Path, by_itself: Path, joint_calls: list[int]
) -> None:
    cells = cells_of(tmp_path, ROWS)
    alone(by_itself, cells)
    joint_calls.clear()
    assert not run_together(tmp_path / "stack", cells).failed
    assert set(joint_calls) == {len(ROWS)}
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))
        assert [stacked_with(folder, cell) for folder in (by_itself, tmp_path / "stack")] == [1, len(ROWS)]
    finals = {str(records(tmp_path / "stack", cell)["rounds"]) for cell in cells}
    assert len(finals) == len(ROWS)  # the rates make a difference, so it is not one cell four times


def test_other_seeds_join_a_stack_with_samples_of_their_own(
    tmp_path: Path, by_itself: Path, joint_calls: list[int]
) -> None:
    cells = cells_of(tmp_path, [ROWS[1], ROWS[2]], seeds=2)
    alone(by_itself, cells)
    joint_calls.clear()
    assert run_together(tmp_path / "stack", cells).failed == {}
    assert set(joint_calls) == {4}
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))


def test_what_depends_on_the_seed_is_computed_seed_by_seed(
    tmp_path: Path, by_itself: Path, joint_calls: list[int]
) -> None:
    cells = cells_of(tmp_path, [METHODS.resolve(ReadsSeed)], seeds=2)
    alone(by_itself, cells)
    joint_calls.clear()
    assert run_together(tmp_path / "stack", cells).failed == {}
    assert joint_calls == [1] * 2 * ROUNDS
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))


def test_seeds_with_other_cells_are_computed_one_after_the_other(
    tmp_path: Path, by_itself: Path, joint_calls: list[int]
) -> None:
    cells = cells_of(tmp_path, ROWS[1:], seeds=2)[:5]
    alone(by_itself, cells)
    joint_calls.clear()
    assert run_together(tmp_path / "stack", cells).failed == {}
    assert sorted(joint_calls) == [2] * ROUNDS + [3] * ROUNDS
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))


def test_a_stack_goes_on_where_a_kill_left_it(tmp_path: Path, by_itself: Path) -> None:
    cells = cells_of(tmp_path, ROWS[1:])
    alone(by_itself, cells)
    conditions = Conditions(executor="stacked", checkpoint_seconds=0)
    stack = CellStack(placed(tmp_path / "stack", cells), conditions)
    for _ in range(3):
        stack.advance()
    # One cell is further than the others, as it is if a kill comes between two checkpoints.
    stack.running[0].advance()
    del stack
    again = CellStack(placed(tmp_path / "stack", cells), conditions)
    assert sorted(cell.rounds_done for cell in again.running) == [3, 3, 4]
    while again.running:
        again.advance()
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))


def test_a_cell_that_diverges_leaves_the_others_alone(tmp_path: Path, by_itself: Path) -> None:
    cells = cells_of(tmp_path, [prox(0.1, 0.05), prox(0.1, 1e30), prox(0.1, 0.02)])
    alone(by_itself, cells)
    run_together(tmp_path / "stack", cells)
    for cell in cells:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))
    assert CellFolder(tmp_path / "stack" / cells[1].cell_id).rounds()[-1].dropped > 0


def test_numbers_that_steer_divide_a_stack_and_a_broken_cell_fails_alone(
    tmp_path: Path, by_itself: Path, joint_calls: list[int]
) -> None:
    name = METHODS.resolve(Choosy)
    rows = [
        {"name": name, "label": f"{shift} {mu}", "set": {"shift": shift, "mu": mu}}
        for shift, mu in ((0.0, 0.1), (0.0, 0.2), (1.5, 0.1), (1.5, 0.2), (3.0, 0.1))
    ]
    cells = cells_of(tmp_path, rows)
    alone(by_itself, cells[:-1])
    joint_calls.clear()
    stack = run_together(tmp_path / "stack", cells)
    assert {folder.path.name: str(error) for folder, error in stack.failed.items()} == {
        cells[-1].cell_id: "broken on purpose"
    }
    assert joint_calls.count(2) >= 2 * ROUNDS  # both pairs, in every round
    for cell in cells[:-1]:
        assert_same(records(tmp_path / "stack", cell), records(by_itself, cell))


def test_time_is_divided_among_the_cells_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(Clock, "_now", staticmethod(lambda: (now[0], 2 * now[0])))
    clock = Clock()
    now[0] = 1
    clock.shared_by(4)
    now[0] = 9
    assert (clock.wall, clock.processor) == (1 + 2, 2 + 4)
    clock.shared_by(1)
    now[0] = 10
    assert clock.wall == 4


def test_a_stack_has_whole_seeds_and_all_processes_are_busy(tmp_path: Path) -> None:
    cells = cells_of(tmp_path, [*ROWS, "fedavg"], seeds=3)

    def sizes(most: int, processes: int) -> list[int]:
        found = stacks(cells, most, processes)
        assert sorted(cell.cell_id for stack in found for cell in stack) == sorted(c.cell_id for c in cells)
        assert all(len({cell.method for cell in stack}) == 1 for stack in found)
        return [len(stack) for stack in found]

    assert sizes(most=24, processes=1) == [12, 3]
    assert sizes(most=8, processes=1) == [8, 4, 3]
    assert sizes(most=7, processes=1) == [4, 4, 4, 3]
    assert sizes(most=3, processes=1) == [3, 1, 3, 1, 3, 1, 3]
    assert sizes(most=24, processes=3) == [4, 4, 4, 1, 1, 1]


@pytest.mark.parametrize(("model", "several"), [("mlp", True), ("cnn", False)])
def test_only_models_that_are_stacked_take_several_cells(tmp_path: Path, model: str, several: bool) -> None:
    (cell,) = cells_of(tmp_path, ["fedavg"], model={"name": model})
    problem = CellRun(CellFolder(tmp_path / "cell"), cell.config, Conditions()).assembled.problem
    assert (cells_at_once(problem, "auto")[0] > 1) is several
    assert cells_at_once(problem, "loop")[0] == 1
