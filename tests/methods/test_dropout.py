"""Dropout from the step's key: the same in a loop and in a stack, and none outside of training."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.contract.fixtures import CLASSES, tiny_problem
from bench.contract.nests import gaps
from bench.contract.runs import run, standing
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.problem import Problem
from bench.models.architectures.cnn import CNN
from bench.models.base import seeded_model
from methods.core.random import drawing_from
from methods.core.task import initial_tree
from methods.fedavg import FedAvg
from methods.modules.dropout import Dropout


def problem(dropout: float) -> Problem:
    made = tiny_problem(FedAvg(), "cnn")
    spec = CNN(channels=(2, 3), features=6, embedding=5, grid=2, dropout=dropout)
    model = seeded_model(spec, (1, 8, 8), CLASSES, 0)
    return replace(made, task=replace(made.task, model=model, initial=initial_tree(model)))


def test_a_stack_leaves_out_what_the_loop_leaves_out() -> None:
    made = problem(0.4)
    loop, stacked = LoopHost(made), StackedHost(made)
    expected = standing(run(made, loop, 2), loop)
    assert not gaps(expected, standing(run(made, stacked, 2), stacked), 1e-5)
    plain = LoopHost(problem(0.0))
    assert gaps(expected, standing(run(plain.problem, plain, 2), plain), 1e-4)


def test_values_are_left_out_at_the_rate_and_the_mean_stays() -> None:
    layer, x = Dropout(0.25), torch.ones(200, 50)
    with drawing_from(3):
        one = layer(x)
    with drawing_from(4):
        other = Dropout(0.25)(x)
    assert one.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float((one == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(one.mean()) == pytest.approx(1, abs=0.02)
    assert not torch.equal(one, other)
    with pytest.raises(RuntimeError, match="outside of a training step"):
        layer(x)
    assert torch.equal(layer.eval()(x), x)
