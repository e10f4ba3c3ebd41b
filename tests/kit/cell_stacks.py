"""Cells that are trained alone and together, and what they leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field

from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.cell_stack import CellStack
from bench.engine.conditions import Conditions
from bench.engine.stacking import call as computed_together
from bench.records.cell_folder import CellFolder
from bench.suite.loading import load_suite
from bench.suite.planning import PlannedCell, plan_cells
from methods.base import Loss, Message, State, Task
from methods.core.hyperparameters import Role
from methods.fedprox import FedProx
from tests.kit.cli import TINY, write_suite

ROUNDS = 5


def cells_of(folder: Path, rows: list[Any], **sections: Any) -> list[PlannedCell]:
    training = {**TINY["training"], "rounds": ROUNDS, "epochs": 2}
    suite = {"training": training, "model": {"name": "mlp"}, "evaluation": {"every": 2}, "seeds": 1}
    return plan_cells(load_suite(str(write_suite(folder, **{**suite, **sections, "methods": rows}))))


def placed(folder: Path, cells: list[PlannedCell]) -> list[tuple[CellFolder, CellConfig]]:
    return [(CellFolder(folder / cell.cell_id), cell.config) for cell in cells]


def alone(folder: Path, cells: list[PlannedCell], executor: str = "stacked") -> None:
    """Run every cell by itself, unless an earlier test has done so in this folder."""
    for place, config in placed(folder, cells):
        if place.is_done:
            continue
        run = CellRun(place, config, Conditions(executor=executor))
        while not run.done:
            run.advance()


def run_together(folder: Path, cells: list[PlannedCell]) -> CellStack:
    stack = CellStack(placed(folder, cells), Conditions(executor="stacked"))
    while stack.running:
        stack.advance()
    return stack


def records(folder: Path, cell: PlannedCell) -> dict[str, Any]:
    """All that a cell has left behind but the time it took."""
    place = CellFolder(folder / cell.cell_id)
    result = place.result()
    assert result is not None
    rounds = [line.model_dump(exclude={"seconds"}, exclude_none=True) for line in place.rounds()]
    with np.load(place.predictions) as kept:
        predictions = {name: kept[name].tolist() for name in kept.files}
    return {"rounds": rounds, "final": result.final.model_dump(), "predictions": predictions}


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, Mapping):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list):
        for mine, theirs in zip(found, expected, strict=True):
            assert_same(mine, theirs)
    else:
        assert found == (pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else expected)


def count_joint_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cells every joint computation has, from now on."""
    sizes: list[int] = []
    real = computed_together.stacked_outcome

    def counted(number: int, sets: Any, *rest: Any) -> Any:
        sizes.append(sum(map(len, sets)))
        return real(number, sets, *rest)

    monkeypatch.setattr(computed_together, "stacked_outcome", counted)
    return sizes


class ReadsSeed(FedProx):
    """Its clients need what depends on the seed."""

    label = "ReadsSeed"
    reads_seed = True

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        factor = 1 + task.normal("factor", 1)[0].abs()
        return lambda params, batch: factor * plain(params, batch)


class Choosy(FedProx):
    """Has a number that decides what is computed, and breaks it if it is large."""

    label = "Choosy"
    shift: Annotated[float, Role.BRANCH] = Field(default=0.0, ge=0)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        if self.shift > 2:
            raise RuntimeError("broken on purpose")
        return plain if self.shift < 1 else lambda params, batch: self.shift * plain(params, batch)
