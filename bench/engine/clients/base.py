"""Hosts: where clients live. A host owns their data and private state and does their local work.

The server's side of a round is the same for every host (see `federation.py`): executors differ only in how
`run` computes the replies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch

from bench.engine.checkpoints import load_state, save_state
from bench.engine.devices import sent_orders
from bench.engine.evaluation import Scores, score
from bench.engine.problem import Problem
from bench.engine.shared_preludes import are_same
from bench.engine.stacking.differing_numbers import sample_settings
from methods.base import Batches, Message, Reply, SamplesByIndex, State, Task
from methods.core.batches import RaggedBatches, Samples
from methods.core.loss_terms import LossTerms
from methods.core.optional import MakesSamples
from methods.core.tree import leaves_of


class Hosts(Protocol):
    """One host, or several behind the same interface."""

    @property
    def executor(self) -> str:
        """By which name a user knows this way of computing."""

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> Sequence[Reply]:
        """Do the local work of these clients and return their replies in the same order."""

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        """How well each client predicts, with its private state."""

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        """The method's figures about these clients' private state."""

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...

    def close(self) -> None:
        """Let go of processes."""


def is_finite(nest: Any) -> bool:
    """Whether there is no NaN and no infinity in it (a sum that overflows counts as infinite)."""
    return are_finite([nest])[0]


def are_finite(nests: Sequence[Any]) -> list[bool]:
    """The same of several, with one question to the device."""
    sums = [
        [leaf.sum(dtype=torch.float32) for leaf in leaves_of(nest) if leaf.is_floating_point()]
        for nest in nests
    ]
    numbers = [each for of_one in sums for each in of_one]
    answers = iter(torch.isfinite(torch.stack(numbers)).tolist() if numbers else [])
    return [all(list(islice(answers, len(of_one)))) for of_one in sums]


def merged(state: State, changes: State) -> State:
    """The state with some entries changed; entries that are missing stay, inside dictionaries too."""
    return state | {
        key: merged(state[key], change)
        if isinstance(change, dict) and isinstance(state.get(key), dict)
        else change
        for key, change in changes.items()
    }


def without_entries(state: State, names: Collection[str]) -> State:
    """The state without these entries, which may be inside others: `inner.shared`."""
    kept = {key: entry for key, entry in state.items() if key not in names}
    inside = {name.partition(".")[2] for name in names if name.startswith("inner.")}
    return kept | {"inner": without_entries(kept["inner"], inside)} if inside and "inner" in kept else kept


def chosen_entries(state: State, names: Collection[str]) -> State:
    """These entries of a state, as far as it has them."""
    found = {key: state[key] for key in names if key in state}
    inside = {name.partition(".")[2] for name in names if name.startswith("inner.")}
    return found | ({"inner": chosen_entries(state["inner"], inside)} if inside and "inner" in state else {})


class Host(ABC):
    executor: ClassVar[str]
    room: ClassVar[int] = 2**30
    """Bytes of samples made by a method that are kept between rounds, at most; others are made again from the
    same seed each round."""

    def __init__(self, problem: Problem, name: str = "0") -> None:
        self.problem = problem
        self.name = name
        self._states: dict[int, State] = {}
        self._task: tuple[int, Task] | None = None
        self._exchanges = problem.exchanges()
        self._maker = problem.method if isinstance(problem.method, MakesSamples) else None
        self.resamples = self._maker is not None and self._maker.resamples()

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> Sequence[Reply]:
        if phase == len(self._exchanges) - 1:
            return self.train(number, messages)
        works = [
            self.work(phase, number, client, message, self.problem.train[client])
            for client, message in messages
        ]
        return self.judged(works)

    @abstractmethod
    def train(self, number: int, messages: Sequence[tuple[int, Message]]) -> Sequence[Reply]:
        """The exchange that is repeated."""

    def work(
        self, phase: int, number: int, client: int, message: Message, samples: Samples
    ) -> tuple[Reply, State]:
        """What one client computes by itself: its reply, and what changed of its private state."""
        in_round = phase == len(self._exchanges) - 1
        terms = LossTerms() if in_round and self.problem.task.records_losses else None
        arguments = self.arguments(phase, number, client, message, samples, terms)
        content, state = self._exchanges[phase].local(*arguments)
        noted = None if terms is None else terms.means()
        return Reply(client, len(samples.y), content, terms=noted), state

    def arguments(
        self,
        phase: int,
        number: int,
        client: int,
        message: Message,
        samples: Samples,
        terms: LossTerms | None = None,
    ) -> tuple[Task, State, Message, Batches]:
        """What `local` of an exchange is called with; `terms` is where the terms of the loss are noted."""
        problem = self.problem
        in_round = phase == len(self._exchanges) - 1
        prepare = problem.recipe.preparation(terms) if in_round else None
        orders = sent_orders(problem.orders(client, number, len(samples.y)), samples.y.device)
        renewed = partial(self.made, client, number) if self.resamples else None
        key = problem.key(client, number)
        batches = RaggedBatches(samples, orders, problem.batch_size, key, renewed, prepare)
        return self.task_in(number), self.state(client), message, batches

    def judged(self, works: Sequence[tuple[Reply, State]]) -> list[Reply]:
        """The replies, each with whether it can be used; asked of all at once, as a GPU would stand still for
        every question.

        A client whose work blew up keeps the state it had, and can take part again.
        """
        sound = are_finite([(reply.content, state) for reply, state in works])
        for (reply, state), good in zip(works, sound, strict=True):
            if state and good:
                self._states[reply.client] = merged(self.state(reply.client), state)
        return [reply._replace(sound=good) for (reply, _), good in zip(works, sound, strict=True)]

    def task_in(self, number: int) -> Task:
        """The task of a round; made once per round, not once per client."""
        if self._task is None or self._task[0] != number:
            self._task = number, self.problem.task_in(number)
        return self._task[1]

    def made(self, client: int, number: int, epoch: int = 0) -> Samples:
        """What the method has the client train on: its own samples, unless the method makes some."""
        samples = self.made_late(client, number, epoch)
        return samples if isinstance(samples, Samples) else samples.all()

    def made_late(self, client: int, number: int, epoch: int = 0) -> Samples | SamplesByIndex:
        """The same, but the method may leave making them to when the client comes to them."""
        own, task = self.problem.train[client], self.problem.task
        if self._maker is None:
            return own
        keys = (client, number, epoch) if self.resamples else (client,)
        return self._maker.training_samples(task, self.state(client), own, task.generator("samples", *keys))

    @property
    def makes(self) -> bool:
        """Whether clients train on samples that the method makes."""
        return self._maker is not None

    def makes_the_same(self, other: Host) -> bool:
        """Whether all clients train on the same samples in both, in every round.

        The two differ only in numbers, samples and seed.
        """
        if self.problem.train is not other.problem.train:
            return False
        if self._maker is None or self.resamples:
            return self._maker is None
        mine, theirs = (sample_settings(host.problem.method) for host in (self, other))
        return mine == theirs and are_same(self._sample_states(), other._sample_states())

    def _sample_states(self) -> dict[int, State]:
        """What samples are made from, of each client's private state."""
        entries = self.problem.method.sample_state
        return {
            client: chosen_entries(state, entries) if entries else state
            for client, state in self._states.items()
        }

    def state(self, client: int) -> State:
        if client not in self._states:
            return self.problem.method.client(self.problem.task)
        return self._states[client]

    def seen_in_rounds(self, client: int) -> State:
        """What a client's work in a round reads of its private state."""
        entries = self.problem.method.sample_state
        return without_entries(self.state(client), entries) if entries else self.state(client)

    def states(self) -> dict[int, State]:
        """The private states of the clients that have one of their own by now."""
        return dict(self._states)

    def adopt(self, states: Mapping[int, State]) -> None:
        """Give clients these private states."""
        self._states.update(states)

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        return [score(self.problem, server, self.state(client), client) for client in clients]

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        method, task = self.problem.method, self.problem.task
        return [method.observe(task, server, self.state(client)) for client in clients]

    def save(self, folder: Path) -> None:
        save_state({str(client): state for client, state in self._states.items()}, self._file(folder))

    def load(self, folder: Path) -> None:
        self._states = {}
        for file in sorted(folder.glob(self._file(folder, "*").name)):
            for client, state in load_state(file, self.problem.task.device).items():
                if int(client) in self.problem.train:
                    self._states[int(client)] = state

    def close(self) -> None:  # noqa: B027
        """Nothing to do here: there are no processes, and other cells may share its samples."""

    def _file(self, folder: Path, name: str | None = None) -> Path:
        return folder / f"clients-{name or self.name}.pt"
