"""Augmentation and label smoothing in whole rounds: the same with every executor, and never in evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from bench.config.training import Augmentation
from bench.contract.fixtures import CLASSES, SIZES, tiny_problem
from bench.contract.nests import gaps
from bench.contract.runs import run, standing
from bench.engine.assembly import assemble
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.preparation import Recipe, recipe_of
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.models.architectures.mlp import MLP
from bench.models.base import seeded_model
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from methods.base import FedAlgorithm
from methods.core.batches import Samples
from methods.core.optimisers import SGD
from methods.core.task import Task, initial_tree
from methods.fedavg import FedAvg
from methods.fedlsa import FedLSA
from methods.fedmix import FedMix
from methods.fedproto_avg import FedProtoAvg
from tests.kit.cli import TINY, write_suite
from tests.kit.tiny import draw

SHAPE = (3, 6, 6)


def pictures(method: FedAlgorithm, recipe: dict[str, Any], smoothing: float = 0.0) -> Problem:
    """Clients of unequal sizes with pictures as bytes."""
    model = seeded_model(MLP(hidden=6), SHAPE, CLASSES, seed=0)
    task = Task(model, initial_tree(model), CLASSES, len(SIZES), SGD(lr=0.05), 0, input_shape=SHAPE)
    source = draw(4)
    train = {
        client: Samples(
            torch.randint(0, 256, (size, *SHAPE), generator=source, dtype=torch.uint8),
            torch.randint(CLASSES, (size,), generator=source),
        )
        for client, size in enumerate(SIZES)
    }
    problem = tiny_problem(method, "mlp")
    made = Recipe(Augmentation(**recipe) if recipe else None, smoothing, model.standardised)
    data: dict[str, Any] = {"train": train, "test": {"all": train[0]}, "own_test": {}, "validation": {}}
    return replace(problem, task=task, recipe=made, **data)


def after(problem: Problem, kind: type[LoopHost] | type[StackedHost], rounds: int = 2) -> dict[str, Any]:
    host = kind(problem)
    return standing(run(problem, host, rounds), host)


RECIPES: dict[str, tuple[dict[str, Any], float]] = {
    "crop": ({"crop": 2}, 0.0),
    "flip": ({"flip": True}, 0.0),
    "colours": ({"brightness": 0.4, "contrast": 0.4, "saturation": 0.4}, 0.0),
    "mixup": ({"mixup": 0.5}, 0.0),
    "smoothing": ({}, 0.1),
    "all": ({"crop": 1, "flip": True, "contrast": 0.3, "mixup": 1.0}, 0.1),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_stack_trains_on_what_the_loop_trains_on(name: str) -> None:
    problem = pictures(FedAvg(), *RECIPES[name])
    expected = after(problem, LoopHost)
    assert not gaps(expected, after(problem, StackedHost), 1e-5)
    assert gaps(expected, after(pictures(FedAvg(), {}), LoopHost), 1e-4), f"{name} did nothing"


@pytest.mark.parametrize("method", [FedLSA(server_steps=2), FedProtoAvg(), FedMix()], ids=lambda m: m.label)
def test_methods_with_other_uses_of_labels_train_on_mixtures_too(method: FedAlgorithm) -> None:
    problem = replace(pictures(method, {"mixup": 1.0}, 0.1), method=method)
    assert not gaps(after(problem, LoopHost), after(problem, StackedHost), 1e-5)


def test_evaluation_and_class_means_see_the_samples_as_they_are() -> None:
    """With a rate of almost nothing, all that is left is what `once` and the test sets give."""
    ends = []
    for recipe in ({}, {"crop": 3, "brightness": 1.0, "mixup": 1.0}):
        problem = pictures(FedProtoAvg(lam=0.0), recipe)
        still = replace(problem, task=replace(problem.task, optimiser=SGD(lr=1e-12)))
        federation = run(still, LoopHost(still), 1)
        ends.append((federation.server["prototypes"], federation.evaluate(personal=False)))
    assert torch.allclose(ends[0][0], ends[1][0], atol=1e-6)
    assert ends[0][1] == ends[1][1]


def test_augmentation_that_does_not_fit_the_samples_is_refused(tmp_path: Path) -> None:
    x, y = np.ones((12, 5), np.float32), np.arange(12) % 2
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    file = write_suite(
        tmp_path,
        dataset={"name": "arrays", "path": str(tmp_path / "own.npz")},
        partition={"name": "iid", "clients": 2},
        training=TINY["training"] | {"augment": {"flip": True}},
        seeds=1,
    )
    with pytest.raises(UserError, match="change pictures, but the model gets vectors"):
        assemble(plan_cells(load_suite(str(file)))[0].config)
    with pytest.raises(UserError, match="need pictures as bytes"):
        recipe_of(Augmentation(brightness=0.2), 0.0, pictures(FedAvg(), {}).task, as_bytes=False)
    with pytest.raises(ValidationError, match="changes nothing"):
        Augmentation()
