"""Samples that a method makes: each when a client first comes to it, and never if no client does.

A client that takes a fixed number of steps per round may see only a part of its samples, above all if its
configuration is stopped after a few rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

import torch
from torch import Tensor

WORTHWHILE = 4
"""Rows are made late where they take at least this many times the memory of what they are made from."""


class Block(Protocol):
    """Samples that are made in the same way."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Of what is kept for making them alone."""

    def write(self, rows: Tensor | None, into: Tensor) -> None:
        """Make the samples with these numbers, or all; each is the same whichever others are made with it."""


@dataclass(frozen=True)
class Given:
    """Samples that are there already."""

    x: Tensor

    def __len__(self) -> int:
        return len(self.x)

    @property
    def nbytes(self) -> int:
        return 0

    def write(self, rows: Tensor | None, into: Tensor) -> None:
        into.copy_(chosen(self.x, rows))


def chosen(x: Tensor, rows: Tensor | None) -> Tensor:
    """These rows, or all."""
    return x if rows is None else x.index_select(0, rows)


class LateRows:
    """The rows of some blocks, one after the other; they are kept in the order in which they were made."""

    def __init__(self, blocks: Sequence[Block], like: Tensor) -> None:
        """`like`: a tensor with rows of that shape and kind."""
        self._blocks = blocks
        self._bounds = list(accumulate(map(len, blocks), initial=0))
        self.stored = like.new_empty(self._bounds[-1], *like.shape[1:])  # takes memory only where written
        self._places = torch.full((len(self.stored),), -1, device=like.device)
        self._made = 0

    def __len__(self) -> int:
        return len(self.stored)

    @property
    def shape(self) -> torch.Size:
        return self.stored.shape

    @property
    def device(self) -> torch.device:
        return self.stored.device

    @property
    def nbytes(self) -> int:
        """When all of them have been made."""
        return self.stored.nbytes

    @property
    def is_worthwhile(self) -> bool:
        """Whether keeping what they are made from takes little, compared with what they take themselves."""
        return WORTHWHILE * sum(block.nbytes for block in self._blocks) <= self.nbytes

    def placed(self, rows: Tensor) -> Tensor:
        """Where in `stored` these rows are, after those that are new have been made."""
        places = self._places[rows]
        if bool((places < 0).any()):
            self._make(rows[places < 0].unique())
            places = self._places[rows]
        return places

    def all(self) -> Tensor:
        """All rows in order; instead of making any late."""
        for (first, last), block in zip(pairwise(self._bounds), self._blocks, strict=True):
            block.write(None, self.stored[first:last])
        torch.arange(len(self), out=self._places)
        self._made = len(self)
        return self.stored

    def _make(self, rows: Tensor) -> None:
        """Rows in ascending order, none of which is there."""
        ends = torch.searchsorted(rows, torch.tensor(self._bounds[1:], device=rows.device)).tolist()
        bounds = pairwise([0, *ends])
        for block, start, (first, last) in zip(self._blocks, self._bounds, bounds, strict=False):
            if first < last:
                block.write(rows[first:last] - start, self.stored[self._made + first : self._made + last])
        self._places[rows] = torch.arange(self._made, self._made + len(rows), device=rows.device)
        self._made += len(rows)
