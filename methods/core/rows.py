"""Samples by position: plain indexing is several times slower than copying whole rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from methods.core.stacking import in_stack, levels_of, one_of, outside, stack_of


class Pieces(NamedTuple):
    """Several tensors that the clients of a stack take their rows from.

    Each serves some clients that stand next to each other; their positions count from its beginning.
    """

    tensors: Sequence[Tensor]
    clients: Sequence[int]
    """How many clients each of them serves."""

    @property
    def device(self) -> torch.device:
        return self.tensors[0].device

    def at(self, positions: Tensor) -> Tensor:
        """The rows at these positions, client by client."""
        bounds = pairwise(accumulate(self.clients, initial=0))
        served = [positions[first:last].reshape(-1) for first, last in bounds]
        first = self.tensors[0]
        if first.dim() > 2:
            found = torch.cat([_copied(x, at) for x, at in zip(self.tensors, served, strict=True)])
        else:
            found = first.new_empty(positions.numel(), *first.shape[1:])
            places = found.split([len(at) for at in served])
            for x, at, place in zip(self.tensors, served, places, strict=True):
                torch.index_select(x, 0, at, out=place)
        return found.view(*positions.shape, *first.shape[1:])


Source: TypeAlias = Tensor | Pieces
"""What rows are taken from."""


def rows(x: Source, at: Tensor) -> Tensor:
    """x[at] along the first dimension; `at` may be of one client in a stack that has one pool x."""
    if isinstance(x, Tensor) and not in_stack(at):
        return _copied(x, at)
    levels = levels_of(at)
    with outside():
        positions = stack_of(at)
        if isinstance(x, Pieces):
            copied = x.at(positions)
        else:
            copied = _copied(x, positions.reshape(-1)).view(*positions.shape, *x.shape[1:])
    return one_of(copied, levels)


def _copied(x: Tensor, at: Tensor) -> Tensor:
    # `index_select` would lose the memory format of images.
    return x[at] if x.dim() > 2 else x.index_select(0, at)
