"""Configurations of a search whose stack cannot be computed are no failures of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.engine.conditions import Conditions
from bench.engine.stacking.joint import StackError
from bench.search.trial import TrialBatch
from bench.suite.methods import METHODS
from methods.base import Loss, Message, State, Task
from methods.fedavg import FedAvg
from tests.kit.cell_stacks import cells_of, placed


class Undeclared(FedAvg):
    """Does not say that a number decides what it computes."""

    label = "Undeclared"
    mu: float = 0.1

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        return plain if self.mu > 0.2 else lambda params, batch: 2 * plain(params, batch)


def test_a_stack_that_cannot_be_computed_fails_the_job_and_no_configuration(tmp_path: Path) -> None:
    name = METHODS.resolve(Undeclared)
    rows = [{"name": name, "label": str(mu), "set": {"mu": mu}} for mu in (0.1, 0.3)]
    cells = placed(tmp_path / "cells", cells_of(tmp_path, rows))
    conditions = Conditions(executor="stacked")
    batch = TrialBatch({number: [cell] for number, cell in enumerate(cells)}, conditions)
    with pytest.raises(StackError, match="local of 2 cells could not be computed in one stack"):
        batch.advance()
    assert all(trial.failure is None for trial in batch.trials)
    for number, cell in enumerate(cells):
        alone = TrialBatch({number: [cell]}, conditions)
        while not alone.done:
            alone.advance()
        assert alone.trials[0].failure is None
