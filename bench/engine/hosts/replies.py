"""The replies of a round's clients; those of a stack stay together until a single one is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
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
    """A client of one set of samples, and where its own are."""

    of_set: int
    """The set's place among all."""
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

    def clients_of(self, of_set: int) -> list[tuple[int, Row]]:
        """The clients of a set, each with its place in the stack."""
        return [(at, row) for at, row in enumerate(self.rows) if row.of_set == of_set]


class StackedReplies(Replies):
    """The replies to one cell, taken out of the stack when they are looked at."""

    def __init__(self, outcomes: Sequence[Outcome], of_set: int, cell: int) -> None:
        self.outcomes = outcomes
        self.of_set = of_set
        self.cell = cell

    @cached_property
    def _parts(self) -> list[_Part]:
        return [part for outcome in self.outcomes if (part := _part_of(outcome, self.of_set))]

    @cached_property
    def _replies(self) -> Sequence[Reply]:  # type: ignore[override]
        return [
            Reply(row.client, row.place.size, content, sound, terms)
            for part in self._parts
            for row, content, sound, terms in zip(
                part.rows,
                part.filled(part.outcome.content, self.cell),
                part.sound(self.cell),
                part.terms(self.cell),
                strict=True,
            )
        ]

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    @property
    def are_sound(self) -> bool:
        return all(all(part.sound(self.cell)) for part in self._parts)

    def sound(self) -> Replies:
        return self if self.are_sound else super().sound()

    def size_in_bytes(self) -> int:
        return sum(len(part.rows) * part.outcome.bytes_of_one for part in self._parts)

    def changes(self) -> Iterator[tuple[int, State]]:
        """Each client with what changed of its private state, without those whose work cannot be used."""
        for part in self._parts:
            if part.outcome.state:
                states = part.filled(part.outcome.state, self.cell)
                for row, state, sound in zip(part.rows, states, part.sound(self.cell), strict=True):
                    if sound:
                        yield row.client, state


class _Part(NamedTuple):
    """The clients of one set in an outcome, where they stand next to each other."""

    outcome: Outcome
    first: int
    """The place of the first one."""
    rows: Sequence[Row]

    def sound(self, cell: int) -> list[bool]:
        return [of_client[cell] for of_client in self.outcome.sound[self.first :][: len(self.rows)]]

    def filled(self, nest: Any, cell: int) -> Iterable[Any]:
        """The nest of every client, with its tensors."""
        if not self.outcome.tensors:
            return [nest] * len(self.rows)
        return (fill(nest, tensors) for tensors in self._by_client(self.outcome.tensors, cell))

    def terms(self, cell: int) -> Iterable[dict[str, Tensor] | None]:
        names = list(self.outcome.terms)
        if not names:
            return [None] * len(self.rows)
        by_client = self._by_client(list(self.outcome.terms.values()), cell)
        return (dict(zip(names, means, strict=True)) for means in by_client)

    def _by_client(self, tensors: Sequence[Tensor], cell: int) -> Iterator[tuple[Tensor, ...]]:
        end = self.first + len(self.rows)
        return zip(*(tensor[self.first : end, cell].unbind(0) for tensor in tensors), strict=True)


def _part_of(outcome: Outcome, of_set: int) -> _Part | None:
    own = outcome.clients_of(of_set)
    return _Part(outcome, own[0][0], [row for _, row in own]) if own else None
