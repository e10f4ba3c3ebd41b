"""What a round of a method costs on a GPU, counted on the pretended device.

`python -m tests.kit.device_costs` prints the table of docs/device.md: kernels per local step, and moments per
round at which host and device wait for each other.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import torch

from bench.contract.runs import prepared
from bench.contract.stage import ADAM, PLAIN
from bench.contract.subject import Subject
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from bench.engine.problem import Problem
from bench.suite.methods import METHODS
from methods.core.batches import Samples
from methods.core.optimisers import Optimiser
from methods.core.task import initial_tree
from tests.kit.contract import quick, wrapped
from tests.kit.pretend_device import DEVICE, PretendDevice

HOSTS = {"loop": LoopHost, "stacked": StackedHost}
UNSTACKED = ("norm",)
"""Small models that cannot be stacked."""


@dataclass(frozen=True)
class Cost:
    """One round after the first."""

    kernels: int
    """Of the whole round."""
    per_step: float
    """Kernels that a further local step adds."""
    waits: Counter[str]
    mixed: Counter[str]
    operations: Counter[str]


def on_device(problem: Problem) -> Problem:
    """The same problem with model and samples on the pretended device."""

    def moved(samples: Samples) -> Samples:
        return Samples(*(part.to(DEVICE) for part in samples))

    model = problem.task.model.to(DEVICE)
    return replace(
        problem,
        task=replace(problem.task, model=model, initial=initial_tree(model)),
        train={client: moved(samples) for client, samples in problem.train.items()},
        validation={},
        test={name: moved(samples) for name, samples in problem.test.items()},
        own_test={},
    )


def cost(name: str, executor: str, optimiser: Optimiser = PLAIN) -> Cost:
    """Of a registered method on the first small model that it accepts."""
    one, two = (_second_round(name, executor, optimiser, epochs) for epochs in (1, 2))
    kernels = sum(one[0].kernels.values()), sum(two[0].kernels.values())
    per_step = (kernels[1] - kernels[0]) / (two[1] - one[1])
    counts = one[0]
    return Cost(kernels[0], per_step, counts.waits, two[0].mixed, two[0].kernels)


def _second_round(name: str, executor: str, optimiser: Optimiser, epochs: int) -> tuple[Any, int]:
    subject = Subject(METHODS.load(name), quick(name))
    with PretendDevice() as device:
        problem = subject.problem(epochs=epochs, optimiser=optimiser)
        problem = on_device(replace(problem, task=replace(problem.task)))
        federation = prepared(problem, HOSTS[executor](problem))
        federation.advance()
        mixed = Counter(device.counts.mixed)
        device.counts.reset()
        federation.advance()
        device.counts.mixed.update(mixed)
        steps = [-(-len(samples.y) // problem.batch_size) * epochs for samples in problem.train.values()]
    return device.counts, max(steps) if executor == "stacked" else sum(steps)


def names() -> list[str]:
    return [*METHODS.names(), *wrapped()]


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or names():
        for executor in HOSTS:
            found = cost(name, executor)
            print(name, executor, found.per_step, sum(found.waits.values()), dict(found.waits), dict(found.mixed))
            print("   ", found.operations.most_common(60))
        print("adam", cost(name, "stacked", ADAM).per_step)
