"""Hosts: where clients live. A host owns their data and private state and does their local work.

The server's side of a round is the same whatever the host (see `federation.py`), so the executors differ only
in how `run` computes the replies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from bench.engine.checkpoints import load_state, save_state
from methods.base import FedAlgorithm, Message, Reply, Round, State, Task
from methods.core.batches import PIECE, RaggedBatches, Samples
from methods.core.streams import derive, generator
from methods.core.tree import leaves_of

KEPT_BYTES = 2**30
"""How much of what a method makes of its clients' samples a host keeps from round to round."""


@dataclass(frozen=True)
class Problem:
    """Everything about a cell that does not change while it runs."""

    task: Task
    method: FedAlgorithm
    epochs: int
    batch_size: int
    steps: int | None = field(default=None, kw_only=True)
    """Of a client in a round, where not the epochs count."""
    train: Mapping[int, Samples]
    """Client → its training samples."""
    validation: Mapping[int, Samples]
    """Client → samples held out from its training data; empty where a cell holds out none."""
    test: Mapping[str, Samples]
    """Domain → its test set; empty while hyperparameters are chosen."""
    own_test: Mapping[int, Mapping[str, Tensor]]
    """Client → domain → positions in that domain's test set which are like the client's own data; empty
    without test sets."""

    def phases(self, task: Task) -> list[Round]:
        """The exchanges before the first round, then the one that is repeated."""
        return [*self.method.prelude(task), self.method.round(task)]

    def orders(self, client: int, number: int, count: int) -> list[Tensor]:
        """In which order the client visits its `count` samples in the epochs of a round."""
        draw = generator(self.task.seed, "batches", client, number)
        if self.steps is None:
            return [torch.randperm(count, generator=draw) for _ in range(self.epochs)]
        per_epoch = -(-count // self.batch_size)
        epochs = [torch.randperm(count, generator=draw) for _ in range(-(-self.steps // per_epoch))]
        in_last = self.steps - (len(epochs) - 1) * per_epoch
        return [*epochs[:-1], epochs[-1][: in_last * self.batch_size]]

    def key(self, client: int, number: int) -> int:
        """What the random numbers of a client's steps in a round depend on; there is room to count up."""
        return derive(self.task.seed, "steps", client, number) >> 1


class Scores(NamedTuple):
    """Accuracies of one model."""

    test: dict[str, float]
    """Of a client's own model only where there is no global one."""
    own: float | None
    validation: float | None
    by_others: dict[str, float]
    """Mean over the test sets by the method's other ways to predict."""


class Hosts(Protocol):
    """One host, or several behind the same face."""

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        """Do the local work of these clients and return their replies in the same order."""

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        """How well each client predicts, with its private state."""

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        """The method's figures about these clients' private state."""

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


class Host(ABC):
    def __init__(self, problem: Problem, name: str = "0") -> None:
        self.problem = problem
        self.name = name
        self._states: dict[int, State] = {}
        self._phases = problem.phases(problem.task)

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        if phase == len(self._phases) - 1:
            return self.train(number, messages)
        return [
            self.work(phase, number, client, message, self.problem.train[client])
            for client, message in messages
        ]

    @abstractmethod
    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        """The exchange that is repeated."""

    def work(self, phase: int, number: int, client: int, message: Message, samples: Samples) -> Reply:
        """One client by itself."""
        problem = self.problem
        orders = [order.to(samples.y.device) for order in problem.orders(client, number, len(samples.y))]
        renewed = partial(self.made, client, number) if problem.method.resamples else None
        batches = RaggedBatches(samples, orders, problem.batch_size, problem.key(client, number), renewed)
        content, state = self._phases[phase].local(self.state(client), message, batches)
        return self.finish(client, len(samples.y), content, state, is_finite([content, state]))

    def made(self, client: int, number: int, epoch: int = 0) -> Samples:
        """What the method has the client train on."""
        problem = self.problem
        keys = (client, number, epoch) if problem.method.resamples else (client,)
        draw = problem.task.generator("samples", *keys)
        return problem.method.training_samples(problem.task, self.state(client), problem.train[client], draw)

    def state(self, client: int) -> State:
        if client not in self._states:
            return self.problem.method.client(self.problem.task)
        return self._states[client]

    def finish(self, client: int, samples: int, content: Message, state: State, sound: bool) -> Reply:
        """A client whose work blew up keeps the state it had, and can take part again."""
        if state and sound:
            self._states[client] = {**self.state(client), **state}
        return Reply(client, samples, content, sound)

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        return [score(self.problem, server, self.state(client), client) for client in clients]

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        method, task = self.problem.method, self.problem.task
        return [method.observe_client(task, server, self.state(client)) for client in clients]

    def save(self, folder: Path) -> None:
        save_state({str(client): state for client, state in self._states.items()}, self._file(folder))

    def load(self, folder: Path) -> None:
        self._states = {}
        for file in sorted(folder.glob(self._file(folder, "*").name)):
            for client, state in load_state(file, self.problem.task.device).items():
                if int(client) in self.problem.train:
                    self._states[int(client)] = state

    def _file(self, folder: Path, name: str | None = None) -> Path:
        return folder / f"clients-{name or self.name}.pt"


class LoopHost(Host):
    """One client after the other: the reference, and the one to debug with."""

    def __init__(self, problem: Problem, name: str = "0") -> None:
        super().__init__(problem, name)
        self._kept: dict[int, Samples] = {}
        self._room = KEPT_BYTES

    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        last = len(self._phases) - 1
        return [
            self.work(last, number, client, message, self._samples(client, number))
            for client, message in messages
        ]

    def _samples(self, client: int, number: int) -> Samples:
        if client in self._kept:
            return self._kept[client]
        samples = self.made(client, number)
        if not self.problem.method.resamples and samples.bytes <= self._room:
            self._kept[client] = samples
            self._room -= samples.bytes if samples is not self.problem.train[client] else 0
        return samples


def is_finite(nest: Any) -> bool:
    """Whether there is no NaN and no infinity in it (a sum that overflows counts as infinite)."""
    sums = [leaf.sum(dtype=torch.float32) for leaf in leaves_of(nest) if leaf.is_floating_point()]
    return not sums or bool(torch.isfinite(torch.stack(sums)).all())


def score(problem: Problem, server: State, state: State | None, client: int) -> Scores:
    """The accuracies that a client gets with this state (None: with the global model)."""
    held_out = problem.validation.get(client)
    validation = None if held_out is None else fraction(correct(problem, server, state, held_out))
    if problem.method.has_global_model:
        # Nobody asks then how a client's own model does on data unlike its own.
        alike = [
            Samples(*(part[positions] for part in problem.test[domain]))
            for domain, positions in problem.own_test.get(client, {}).items()
        ]
        hits = [correct(problem, server, state, samples) for samples in alike]
        own = fraction(torch.cat(hits)) if hits else None
        return Scores(test={}, own=own, validation=validation, by_others={})
    right = {domain: correct(problem, server, state, samples) for domain, samples in problem.test.items()}
    return Scores(
        test={domain: fraction(hits) for domain, hits in right.items()},
        own=own_accuracy(problem, right, client) if right else None,
        validation=validation,
        by_others=scores_by_others(problem, server, state),
    )


def scores_by_others(problem: Problem, server: State, state: State | None) -> dict[str, float]:
    if not problem.test:
        return {}
    return {
        name: fmean(fraction(correct(other, server, state, samples)) for samples in problem.test.values())
        for name, method in problem.method.other_predictions().items()
        for other in [replace(problem, method=method)]
    }


def own_accuracy(problem: Problem, right: Mapping[str, Tensor], client: int) -> float:
    hits = [right[domain][positions] for domain, positions in problem.own_test[client].items()]
    return fraction(torch.cat(hits))


def correct(problem: Problem, server: State, state: State | None, samples: Samples) -> Tensor:
    """For every sample whether the prediction is right."""
    task, method = problem.task, problem.method
    with task.evaluation():
        parts = [
            method.predict(task, server, state, x).argmax(dim=1) == y
            for x, y in zip(samples.x.split(PIECE), samples.y.split(PIECE), strict=True)
        ]
    return torch.cat(parts)


def fraction(hits: Tensor) -> float:
    return int(hits.sum()) / len(hits)
