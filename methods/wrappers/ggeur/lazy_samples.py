"""The samples that GGEUR adds: each is made when a client first comes to it, and never if no client does.

A client that takes a fixed number of steps per round may see only a part of its samples, above all if its
configuration is stopped after a few rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from methods.base import Samples

FEWEST = 16
"""Rows from which on a product is the same, bit for bit, whichever rows are computed together."""
WORTHWHILE = 4
"""Samples are made late where they take at least this many times the memory of what they are made from."""


@dataclass(frozen=True)
class AddedSamples:
    """Samples of one class around some centres: X + (ε·√λ)Vᵀ."""

    label: int
    centres: Tensor
    """X."""
    centre_of: Tensor
    """Sample → its centre."""
    noise: Tensor
    """ε·√λ."""
    vectors: Tensor
    """V."""

    def __len__(self) -> int:
        return len(self.noise)

    @property
    def bytes(self) -> int:
        """What is kept only for making them."""
        return self.noise.nbytes + self.centre_of.nbytes

    def write(self, rows: Tensor | None, into: Tensor) -> None:
        """Make these samples, or all; each is the same whichever others are made with it."""
        noise = _chosen(self.noise, rows)
        if len(noise) < FEWEST:
            padding = noise.new_zeros(FEWEST - len(noise), noise.shape[1])
            into.copy_(torch.mm(torch.cat([noise, padding]), self.vectors.T)[: len(into)])
        else:
            torch.mm(noise, self.vectors.T, out=into)
        into += self.centres.index_select(0, _chosen(self.centre_of, rows))


class LazySamples:
    """A client's own samples, then those that it adds, class by class; a `SamplesByIndex`."""

    def __init__(self, own: Samples, added: Sequence[AddedSamples]) -> None:
        self._own, self._added = own, added
        self._bounds = list(accumulate([len(own.y), *map(len, added)], initial=0))
        self.y = torch.cat([own.y, *(own.y.new_full((len(each),), each.label) for each in added)])
        # takes memory only where something is written
        self.stored = own.x.new_empty(len(self.y), *own.x.shape[1:], dtype=torch.float32)
        self._places = torch.full_like(self.y, -1)
        self._made = 0

    @property
    def bytes(self) -> int:
        return self.stored.nbytes + self.y.nbytes

    @property
    def is_compact(self) -> bool:
        return WORTHWHILE * sum(each.bytes for each in self._added) <= self.stored.nbytes

    def places(self, indices: Tensor) -> Tensor:
        places = self._places[indices]
        if bool((places < 0).any()):
            self._make(indices[places < 0].unique())
            places = self._places[indices]
        return places

    def all(self) -> Samples:
        for part, (first, last) in enumerate(pairwise(self._bounds)):
            self._write(part, None, self.stored[first:last])
        self._made = len(self.y)
        torch.arange(self._made, out=self._places)
        return Samples(self.stored, self.y)

    def _make(self, indices: Tensor) -> None:
        """Samples in ascending order, none of which has been made."""
        into = self.stored[self._made : self._made + len(indices)]
        ends = torch.searchsorted(indices, indices.new_tensor(self._bounds)).tolist()
        for part, (first, last) in enumerate(pairwise(ends)):
            if first < last:
                self._write(part, indices[first:last] - self._bounds[part], into[first:last])
        self._places[indices] = torch.arange(self._made, self._made + len(indices), device=indices.device)
        self._made += len(indices)

    def _write(self, part: int, rows: Tensor | None, into: Tensor) -> None:
        """Make these samples, or all, of the client's own (part 0) or of a class."""
        if part == 0:
            into.copy_(_chosen(self._own.x, rows))
        else:
            self._added[part - 1].write(rows, into)


def _chosen(x: Tensor, rows: Tensor | None) -> Tensor:
    """These rows, or all."""
    return x if rows is None else x.index_select(0, rows)
