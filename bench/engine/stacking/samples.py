"""The samples of the clients of a stack."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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


class Row(NamedTuple):
    """A client of one set of samples, and where its own are in a pool."""

    of_set: int
    """The set's place among all."""
    client: int
    part: int
    start: int
    size: int


@dataclass(frozen=True)
class Pool:
    """The samples of several clients, one after the other, in one part or several."""

    parts: Sequence[Samples | SamplesByIndex]
    rows: Sequence[Row]
    """A row per client."""
    renewed: bool = False
    """Whether every epoch has samples of its own, behind each other."""

    @classmethod
    def of(cls, *sets: Mapping[int, Sequence[Samples]]) -> Pool:
        """In one part. Every set: client → its samples of every epoch, or of all epochs."""
        pieces: list[Samples] = []
        rows, start, renewed = [], 0, False
        for of_set, samples in enumerate(sets):
            for client, epochs in samples.items():
                rows.append(Row(of_set, client, 0, start, len(epochs[0].y)))
                start += sum(len(each.y) for each in epochs)
                pieces.extend(epochs)
                renewed = renewed or len(epochs) > 1
        return cls([_in_one(pieces)], rows, renewed)

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
        pools = [cls([each], [Row(0, client, 0, 0, len(each.y))]) for client, each in apart.items()]
        return cls.joined([*pools, *([cls.of(together)] if together else [])])

    @classmethod
    def joined(cls, pools: Sequence[Pool]) -> Pool:
        """Those of several pools, without a copy."""
        parts: list[Samples | SamplesByIndex] = []
        rows: list[Row] = []
        for pool in pools:
            rows += [row._replace(part=len(parts) + row.part) for row in pool.rows]
            parts.extend(pool.parts)
        return cls(parts, rows)

    def of_set(self, position: int) -> Pool:
        """The same samples as the set with this place among all."""
        return Pool(self.parts, [row._replace(of_set=position) for row in self.rows])

    def positions(self, count: int, orders: list[Tensor]) -> list[Tensor]:
        """A client's visiting orders, counted from its first sample."""
        return [order + epoch * count for epoch, order in enumerate(orders)] if self.renewed else orders

    def sources(self, rows: Sequence[Row]) -> tuple[Tensor | SamplesByIndex | Pieces, Tensor | Pieces]:
        """What clients with these rows, in this order, take their inputs and labels from."""
        runs = [(self.parts[part], len(list(run))) for part, run in groupby(row.part for row in rows)]
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
        return max(row.size for row in self.rows)


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
