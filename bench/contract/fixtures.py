"""The small problems on which a method is examined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from bench.contract.models import MODELS
from bench.engine.problem import Problem
from bench.models.base import seeded_model
from methods.base import FedAlgorithm, Task
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Adam, Optimiser
from methods.core.random import generator
from methods.core.task import initial_tree

SIZES = (7, 12, 5)
"""Samples per client: with batches of 4 their last ones are uneven, and so are the numbers of steps."""
BATCH = 4
CLASSES = 3
PLAIN = SGD(lr=0.1)
MOMENTUM = SGD(lr=0.02, momentum=0.9, weight_decay=0.01, clip_norm=1.0)
ADAM = Adam(lr=0.003, epsilon=1e-3)  # a small epsilon makes whole steps of gradients that are only rounding
VANISHING = SGD(lr=1e-12)
"""Steps so small that a client returns what it started from."""


def tiny_problem(
    method: FedAlgorithm,
    model: str,
    *,
    sizes: Sequence[int] = SIZES,
    optimiser: Optimiser = PLAIN,
    epochs: int = 2,
    batch_size: int = BATCH,
    seed: int = 0,
) -> Problem:
    """Clients 0, 1, … with so many samples each; ValueError if the method refuses the model or optimiser."""
    task = tiny_task(model, optimiser, len(sizes), seed)
    method.check(task)
    shape = MODELS[model].shape
    train = {client: samples(size, shape, "train", client) for client, size in enumerate(sizes)}
    if method.pools_data:
        train = {0: Samples(*(torch.cat(part) for part in zip(*train.values(), strict=True)))}
    return Problem(
        task=task,
        method=method,
        epochs=epochs,
        batch_size=batch_size,
        train=train,
        validation={client: samples(3, shape, "validation", client) for client in train},
        test={"near": samples(20, shape, "near"), "far": samples(15, shape, "far")},
        own_test={client: {"near": torch.arange(client, 12), "far": torch.arange(5)} for client in train},
    )


def tiny_task(model: str, optimiser: Optimiser, clients: int, seed: int) -> Task:
    spec, shape, _ = MODELS[model]
    built = seeded_model(spec, shape, CLASSES, seed)
    return Task(built, initial_tree(built), CLASSES, clients, optimiser, seed, input_shape=shape)


def samples(count: int, shape: tuple[int, ...], *key: str | int) -> Samples:
    """Noise around one point per class; the smallest client has none of the last class."""
    draw = generator(0, "/".join(map(str, key)))
    y = torch.arange(count) % (2 if count == SIZES[-1] else CLASSES)
    middles = torch.randn(CLASSES, *shape, generator=generator(0, "middles"))
    return Samples(middles[y] + 0.5 * torch.randn(count, *shape, generator=draw), y)


def refusals(method: FedAlgorithm) -> dict[str, str]:
    """Small model → why the method does not run on it with plain SGD; stops at the first that it accepts."""
    found: dict[str, str] = {}
    for model in MODELS:
        refusal = refusal_of(method, model)
        if not refusal:
            break
        found[model] = refusal
    return found


def refusal_of(method: FedAlgorithm, model: str, optimiser: Optimiser = PLAIN) -> str:
    """The method's own sentence about why it does not run there; empty if it does."""
    try:
        method.check(tiny_task(model, optimiser, len(SIZES), 0))
    except ValueError as refusal:
        return str(refusal)
    return ""


def with_only(problem: Problem, clients: Sequence[int]) -> Problem:
    """The same problem without the other clients' data; ids and random streams stay."""
    return replace(problem, train={client: problem.train[client] for client in clients})


def with_infinite_inputs(problem: Problem, client: int) -> Problem:
    """One sample of the client is infinite in every feature."""
    x, y = problem.train[client]
    x = x.clone()
    x[0] = float("inf")
    return replace(problem, train={**problem.train, client: Samples(x, y)})
