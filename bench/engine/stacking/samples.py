"""The samples of the clients of a stack."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from methods.core.batches import Samples
from methods.core.samples_by_index import SamplesByIndex
from methods.fast.gather import Pieces
from methods.fast.vmap_levels import AVAILABLE

LARGE = 2**23
"""Bytes of a client's samples from which on copying them takes longer than taking batches from one more
place, in all the steps of a search."""


def evenly_cut(items: list[Any], most: int) -> Iterator[list[Any]]:
    """As few parts as there can be with at most `most` items each, as equal as they can be."""
    parts = -(-len(items) // most)
    bounds = [round(part * len(items) / parts) for part in range(parts + 1)]
    return (items[start:end] for start, end in pairwise(bounds))


def may_have_parts(device: torch.device) -> bool:
    """Whether batches can be gathered from several places; a GPU would need a launch for each of them."""
    return AVAILABLE and device.type == "cpu"


class Place(NamedTuple):
    """Where a client's samples are in a pool."""

    part: int
    start: int
    size: int


@dataclass(frozen=True)
class Pool:
    """The samples of several clients, one after the other, in one part or several."""

    parts: Sequence[Samples | SamplesByIndex]
    clients: Mapping[Hashable, Place]
    """A client's number, with that of its set of samples where there are several, → where its samples are."""
    renewed: bool = False
    """Whether every epoch has samples of its own, behind each other."""

    @classmethod
    def of(cls, samples: Mapping[Any, Sequence[Samples]]) -> Pool:
        """In one part. `samples`: client → those of every epoch, or of all epochs."""
        pieces = [each for epochs in samples.values() for each in epochs]
        places, start = {}, 0
        for client, epochs in samples.items():
            places[client] = Place(0, start, len(epochs[0].y))
            start += sum(len(each.y) for each in epochs)
        renewed = any(len(epochs) > 1 for epochs in samples.values())
        return cls([_in_one(pieces)], places, renewed)

    @classmethod
    def of_made(cls, samples: Mapping[int, Samples | SamplesByIndex]) -> Pool:
        """Of samples that nobody else keeps: large ones stay where they are, and may be made late."""
        apart: dict[int, Samples | SamplesByIndex] = {}
        together: dict[int, list[Samples]] = {}
        for client, each in samples.items():
            if not isinstance(each, Samples) and not (_may_be_apart(each) and each.is_compact):
                each = each.all()
            if not isinstance(each, Samples) or _may_be_apart(each):
                apart[client] = each
            else:
                together[client] = [each]
        pools = {client: cls([each], {client: Place(0, 0, len(each.y))}) for client, each in apart.items()}
        return cls.joined([*pools.values(), *([cls.of(together)] if together else [])])

    @classmethod
    def joined(cls, pools: Sequence[Pool]) -> Pool:
        """Those of several pools, without a copy."""
        parts: list[Samples | SamplesByIndex] = []
        clients: dict[Hashable, Place] = {}
        for pool in pools:
            clients |= {
                client: place._replace(part=len(parts) + place.part) for client, place in pool.clients.items()
            }
            parts.extend(pool.parts)
        return cls(parts, clients)

    def of_set(self, position: int) -> Pool:
        """The same, with the number of a set of samples beside that of each client."""
        return Pool(self.parts, {(position, client): place for client, place in self.clients.items()})

    def positions(self, count: int, orders: list[Tensor]) -> list[Tensor]:
        """A client's visiting orders, counted from its first sample."""
        return [order + epoch * count for epoch, order in enumerate(orders)] if self.renewed else orders

    def sources(self, places: Sequence[Place]) -> tuple[Tensor | SamplesByIndex | Pieces, Tensor | Pieces]:
        """What clients with these places, in this order, take their inputs and labels from."""
        runs = [(self.parts[part], len(list(run))) for part, run in groupby(place.part for place in places)]
        inputs, labels = [_inputs(each) for each, _ in runs], [each.y for each, _ in runs]
        if len(runs) == 1:
            return inputs[0], labels[0]
        counts = [count for _, count in runs]
        return Pieces(inputs, counts), Pieces(labels, counts)

    @property
    def device(self) -> torch.device:
        return self.parts[0].y.device

    @property
    def width(self) -> int:
        """Numbers of one sample."""
        return math.prod(_shape(self.parts[0])[1:])

    @cached_property
    def most(self) -> int:
        return max(place.size for place in self.clients.values())


def _may_be_apart(samples: Samples | SamplesByIndex) -> bool:
    return samples.bytes >= LARGE and len(_shape(samples)) == 2 and may_have_parts(samples.y.device)


def _inputs(samples: Samples | SamplesByIndex) -> Tensor | SamplesByIndex:
    return samples.x if isinstance(samples, Samples) else samples


def _shape(samples: Samples | SamplesByIndex) -> torch.Size:
    return (samples.x if isinstance(samples, Samples) else samples.stored).shape


def _in_one(pieces: Sequence[Samples]) -> Samples:
    if len(pieces) == 1:
        return pieces[0]
    return Samples(torch.cat([x for x, _ in pieces]), torch.cat([y for _, y in pieces]))
