"""The replies of a round's clients; those of a stack stay together until a single one is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.engine.hosts.pool import Place
from bench.engine.hosts.stack import fill, leaves_in
from methods.base import Reply, State
from methods.core.tree import size_in_bytes


class Replies(Sequence[Reply]):
    """In the order of the clients."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = replies

    @classmethod
    def of(cls, replies: Sequence[Reply]) -> Replies:
        return replies if isinstance(replies, Replies) else cls(replies)

    def __getitem__(self, position: Any) -> Any:
        return self._replies[position]

    def __len__(self) -> int:
        return len(self._replies)

    def __iter__(self) -> Iterator[Reply]:
        return iter(self._replies)

    def sound(self) -> Replies:
        """Without those that the server cannot use."""
        return self if all(reply.sound for reply in self) else Replies([each for each in self if each.sound])

    def size_in_bytes(self) -> int:
        return sum(size_in_bytes(reply.content) for reply in self)

    def mean_terms(self) -> dict[str, float]:
        """The means over the clients of the terms of their losses; empty if they are not noted."""
        noted: dict[str, list[Tensor]] = {}
        for reply in self:
            for name, value in (reply.terms or {}).items():
                noted.setdefault(name, []).append(value)
        if not noted:
            return {}
        means = torch.stack([torch.stack(values).mean() for values in noted.values()]).tolist()
        return dict(zip(noted, means, strict=True))


class Row(NamedTuple):
    """A client of one seed, and where its samples are."""

    seed: int
    """Its place among the seeds."""
    client: int
    place: Place


class Outcome(NamedTuple):
    """What the clients of a stack have computed, in all cells at once."""

    rows: Sequence[Row]
    content: Any
    """What a client sends, with slots for tensors."""
    state: Any
    """What changed of its private state, with slots for tensors."""
    tensors: Sequence[Tensor]
    """Of the slots: clients × cells × their own dimensions."""
    terms: dict[str, Tensor]
    """Of the loss: clients × cells."""
    sound: Sequence[Sequence[bool]]
    """Client by client and cell by cell whether all its numbers are finite."""

    @property
    def bytes_of_one(self) -> int:
        """What a client sends."""
        sent: int = sum(self.tensors[slot.position].nbytes for slot in leaves_in(self.content))
        return sent // (len(self.rows) * len(self.sound[0]))

    def of_seed(self, seed: int) -> list[tuple[int, Row]]:
        """The clients of a seed, each with its place in the stack."""
        return [(at, row) for at, row in enumerate(self.rows) if row.seed == seed]


class StackedReplies(Replies):
    """The replies to one cell, taken out of the stack when they are looked at."""

    def __init__(self, outcomes: Sequence[Outcome], seed: int, cell: int) -> None:
        self.outcomes = outcomes
        self.seed = seed
        self.cell = cell

    @cached_property
    def _replies(self) -> Sequence[Reply]:  # type: ignore[override]
        return [
            Reply(row.client, row.place.size, content, outcome.sound[at][self.cell], terms)
            for outcome in self.outcomes
            for (at, row), content, terms in zip(
                outcome.of_seed(self.seed),
                self._filled(outcome, outcome.content),
                self._terms(outcome),
                strict=True,
            )
        ]

    def __len__(self) -> int:
        return sum(len(outcome.of_seed(self.seed)) for outcome in self.outcomes)

    @property
    def are_sound(self) -> bool:
        return all(
            outcome.sound[at][self.cell] for outcome in self.outcomes for at, _ in outcome.of_seed(self.seed)
        )

    def sound(self) -> Replies:
        return self if self.are_sound else super().sound()

    def size_in_bytes(self) -> int:
        return sum(len(each.of_seed(self.seed)) * each.bytes_of_one for each in self.outcomes)

    def changes(self) -> Iterator[tuple[int, State]]:
        """Each client with what changed of its private state, without those whose work cannot be used."""
        for outcome in self.outcomes:
            if outcome.state:
                states = self._filled(outcome, outcome.state)
                for (at, row), state in zip(outcome.of_seed(self.seed), states, strict=True):
                    if outcome.sound[at][self.cell]:
                        yield row.client, state

    def _filled(self, outcome: Outcome, nest: Any) -> Iterator[Any]:
        """The nest of every client, with its tensors."""
        if not outcome.tensors:
            return repeat(nest, len(outcome.of_seed(self.seed)))
        by_client = zip(*(self._by_client(outcome, tensor) for tensor in outcome.tensors), strict=True)
        return (fill(nest, tensors) for tensors in by_client)

    def _terms(self, outcome: Outcome) -> Iterator[dict[str, Tensor] | None]:
        if not outcome.terms:
            return repeat(None, len(outcome.of_seed(self.seed)))
        by_client = zip(*(self._by_client(outcome, means) for means in outcome.terms.values()), strict=True)
        return (dict(zip(outcome.terms, means, strict=True)) for means in by_client)

    def _by_client(self, outcome: Outcome, tensor: Tensor) -> Sequence[Tensor]:
        """Of this cell; the clients of a seed stand next to each other."""
        places = [at for at, _ in outcome.of_seed(self.seed)]
        return tensor[places[0] : places[-1] + 1, self.cell].unbind(0) if places else ()
