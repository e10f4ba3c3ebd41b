"""The samples of the clients of a stack, in one place."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from methods.core.batches import Samples

Item = TypeVar("Item")


def evenly_cut(items: list[Item], most: int) -> Iterator[list[Item]]:
    """As few parts as there can be with at most `most` items each, as equal as they can be."""
    parts = -(-len(items) // most)
    bounds = [round(part * len(items) / parts) for part in range(parts + 1)]
    return (items[start:end] for start, end in pairwise(bounds))


class Place(NamedTuple):
    """Where a client's samples are in a pool."""

    start: int
    size: int


@dataclass(frozen=True)
class Pool:
    """The samples of several clients, one after the other."""

    x: Tensor
    y: Tensor
    clients: Mapping[Hashable, Place]
    """A client's number, with that of its seed where there are several, → where its samples are."""
    renewed: bool
    """Whether every epoch has samples of its own, behind each other."""

    @classmethod
    def of(cls, parts: Mapping[Any, Sequence[Samples]]) -> Pool:
        """`parts`: client → its samples, of every epoch or of all epochs."""
        pieces = [samples for epochs in parts.values() for samples in epochs]
        places, start = {}, 0
        for client, epochs in parts.items():
            places[client] = Place(start, len(epochs[0].y))
            start += sum(len(samples.y) for samples in epochs)
        renewed = any(len(epochs) > 1 for epochs in parts.values())
        return cls(torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces]), places, renewed)

    def positions(self, count: int, orders: list[Tensor]) -> list[Tensor]:
        """A client's visiting orders, counted from its first sample."""
        return [order + epoch * count for epoch, order in enumerate(orders)] if self.renewed else orders

    @cached_property
    def most(self) -> int:
        return max(place.size for place in self.clients.values())
