"""What a round of a method costs on a GPU, counted on the pretended device.

`python -m tests.kit.device_costs` prints the table of docs/device.md: kernels per local step, and moments per
round at which host and device wait for each other. Names of methods as arguments restrict it to these.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace

from bench.contract.fixtures import ADAM, MOMENTUM, PLAIN, refusal_of, tiny_problem
from bench.contract.method_under_test import MethodUnderTest
from bench.contract.runs import prepared
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.problem import Problem
from bench.suite.methods import METHODS
from methods.core.batches import Samples
from methods.core.optimisers import Optimiser
from methods.core.task import initial_tree
from tests.kit.contract import quick, wrapped
from tests.kit.pretend_device import DEVICE, PretendDevice

HOSTS = {"loop": LoopHost, "stacked": StackedHost}
OPTIMISERS: dict[str, Optimiser] = {"sgd": MOMENTUM, "adam": ADAM}
"""SGD has momentum, weight decay and clipping; methods that refuse that are measured with plain SGD."""


@dataclass(frozen=True)
class Round:
    """The second round of a run, and what was mixed before it."""

    steps: int
    """Local steps that follow each other."""
    kernels: Counter[str]
    waits: Counter[str]
    mixed: Counter[str]


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
        test={},
        own_test={},
    )


def can_be_stacked(name: str) -> bool:
    """Whether the small model of a method has no batch norm."""
    subject = MethodUnderTest(METHODS.load(name), quick(name))
    assert subject.model is not None
    return not tiny_problem(subject.method, subject.model).task.has_batch_norm


def measured_round(name: str, executor: str, optimiser: str = "sgd", epochs: int = 1) -> Round:
    """Of a registered method on the first small model that it accepts."""
    subject = MethodUnderTest(METHODS.load(name), quick(name))
    assert subject.model is not None
    chosen = accepted(subject, subject.model, OPTIMISERS[optimiser])
    with PretendDevice() as device:
        problem = on_device(tiny_problem(subject.method, subject.model, epochs=epochs, optimiser=chosen))
        federation = prepared(problem, HOSTS[executor](problem))
        federation.advance()
        mixed = Counter(device.counts.mixed)
        device.counts.reset()
        federation.advance()
    steps = [-(-len(samples.y) // problem.batch_size) * epochs for samples in problem.train.values()]
    counts = device.counts
    serial = max(steps) if executor == "stacked" else sum(steps)
    return Round(serial, counts.kernels, counts.waits, mixed + counts.mixed)


def accepted(subject: MethodUnderTest, model: str, optimiser: Optimiser) -> Optimiser:
    return PLAIN if refusal_of(subject.method, model, optimiser) else optimiser


def kernels_per_step(name: str, executor: str, optimiser: str = "sgd") -> float:
    """How many kernels another local step adds."""
    short, long = (measured_round(name, executor, optimiser, epochs) for epochs in (1, 2))
    return (long.kernels.total() - short.kernels.total()) / (long.steps - short.steps)


def names() -> list[str]:
    return [*METHODS.names(), *wrapped()]


def row(name: str) -> str:
    """A line of the table."""
    numbers = []
    for executor in HOSTS:
        numbers += [f"{kernels_per_step(name, executor, optimiser):.0f}" for optimiser in OPTIMISERS]
        numbers.append(str(measured_round(name, executor).waits.total()))
    return f"| {name} | {' | '.join(numbers)} |"


if __name__ == "__main__":
    print(
        "| method | "
        + " | ".join(
            f"{executor}: {what}"
            for executor in HOSTS
            for what in ("kernels per step, SGD", "Adam", "waits per round")
        )
        + " |"
    )
    print("|---" + "|---:" * 6 + "|")
    for name in sys.argv[1:] or names():
        print(row(name), flush=True)
