"""The replies of a round's clients; those of a stack stay together until a single one is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.engine.stacking.samples import Row
from bench.engine.stacking.stacked_tensors import fill, leaves_in
from methods.base import Reply, State
from methods.core.tree import size_in_bytes


class Replies(Sequence[Reply]):
    """In the order of the clients."""

    stacked_with = 1
    """How many cells were computed in the same call, this one included."""

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


class Outcome(NamedTuple):
    """What the clients of a stack have computed, in all cells at once."""

    rows: Sequence[Row]
    """Those of a set of samples stand next to each other."""
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

    def places_of(self, of_set: int) -> range:
        """Where the clients of a set stand."""
        places = [at for at, row in enumerate(self.rows) if row.of_set == of_set]
        return range(places[0], places[-1] + 1) if places else range(0)

    def are_sound(self, places: range, cell: int) -> list[bool]:
        return [self.sound[at][cell] for at in places]

    def filled(self, nest: Any, places: range, cell: int) -> Iterable[Any]:
        """The nest of every client, with its tensors."""
        if not self.tensors:
            return [nest] * len(places)
        return (fill(nest, tensors) for tensors in _by_client(self.tensors, places, cell))

    def terms_at(self, places: range, cell: int) -> Iterable[dict[str, Tensor] | None]:
        if not self.terms:
            return [None] * len(places)
        by_client = _by_client(list(self.terms.values()), places, cell)
        return (dict(zip(self.terms, means, strict=True)) for means in by_client)


def _by_client(tensors: Sequence[Tensor], places: range, cell: int) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(tensor[places.start : places.stop, cell].unbind(0) for tensor in tensors), strict=True)


class StackedReplies(Replies):
    """The replies to one cell, taken out of the stack when they are looked at."""

    def __init__(self, outcomes: Sequence[Outcome], of_set: int, cell: int, stacked_with: int) -> None:
        """`cell`: its place in the set `of_set`; `stacked_with`: how many cells this call computed."""
        self.outcomes = outcomes
        self.of_set = of_set
        self.cell = cell
        self.stacked_with = stacked_with

    @cached_property
    def _parts(self) -> list[tuple[Outcome, range]]:
        """Where the clients of this set are."""
        found = [(outcome, outcome.places_of(self.of_set)) for outcome in self.outcomes]
        return [(outcome, places) for outcome, places in found if places]

    @cached_property
    def _replies(self) -> Sequence[Reply]:  # type: ignore[override]
        return [
            Reply(outcome.rows[at].client, outcome.rows[at].size, content, sound, terms)
            for outcome, places in self._parts
            for at, content, sound, terms in zip(
                places,
                outcome.filled(outcome.content, places, self.cell),
                outcome.are_sound(places, self.cell),
                outcome.terms_at(places, self.cell),
                strict=True,
            )
        ]

    def __len__(self) -> int:
        return sum(len(places) for _, places in self._parts)

    def sound(self) -> Replies:
        are_sound = all(all(outcome.are_sound(places, self.cell)) for outcome, places in self._parts)
        return self if are_sound else super().sound()

    def size_in_bytes(self) -> int:
        return sum(len(places) * outcome.bytes_of_one for outcome, places in self._parts)

    def changes(self) -> Iterator[tuple[int, State]]:
        """Each client with what changed of its private state, without those whose work cannot be used."""
        for outcome, places in self._parts:
            if outcome.state:
                states = outcome.filled(outcome.state, places, self.cell)
                for at, state, sound in zip(
                    places, states, outcome.are_sound(places, self.cell), strict=True
                ):
                    if sound:
                        yield outcome.rows[at].client, state
