"""Samples by position: plain indexing is several times slower than copying whole rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from methods.fast.vmap_levels import in_stack, levels_of, one_of, outside, stack_of

if TYPE_CHECKING:
    from methods.core.samples_by_index import SamplesByIndex


class Pieces(NamedTuple):
    """Several tables that the clients of a stack take their rows from.

    Each serves some clients that stand next to each other; their positions count from its beginning.
    """

    tables: Sequence[Tensor | SamplesByIndex]
    clients: Sequence[int]
    """How many clients each of them serves."""

    @property
    def device(self) -> torch.device:
        return _stored(self.tables[0]).device

    def at(self, places: Tensor) -> Tensor:
        """The rows at these places, client by client."""
        served = [own.reshape(-1) for own in self._by_table(places)]
        tables = [_stored(table) for table in self.tables]
        first = tables[0]
        if first.dim() > 2:
            found = torch.cat([_copied(x, at) for x, at in zip(tables, served, strict=True)])
        else:
            found = first.new_empty(places.numel(), *first.shape[1:])
            parts = found.split([len(at) for at in served])
            for x, at, part in zip(tables, served, parts, strict=True):
                torch.index_select(x, 0, at, out=part)
        return found.view(*places.shape, *first.shape[1:])

    def places(self, positions: Tensor) -> Tensor:
        """Where the rows at these positions are, client by client; missing ones are made."""
        if all(isinstance(table, Tensor) for table in self.tables):
            return positions
        served = zip(self.tables, self._by_table(positions), strict=True)
        return torch.cat([at if isinstance(x, Tensor) else x.places(at) for x, at in served])

    def _by_table(self, positions: Tensor) -> list[Tensor]:
        """Those of the clients that each table serves."""
        return [positions[first:last] for first, last in pairwise(accumulate(self.clients, initial=0))]


def placed(x: Tensor | SamplesByIndex | Pieces, at: Tensor) -> Tensor:
    """Where the rows at these positions are, for `rows`; missing ones are made, those of a whole round best
    in one go."""
    if isinstance(x, Tensor):
        return at
    if not in_stack(at):
        return x.places(at)
    levels = levels_of(at)
    with outside():
        places = x.places(stack_of(at))
    return one_of(places, levels)


def rows(x: Tensor | SamplesByIndex | Pieces, at: Tensor) -> Tensor:
    """Rows by their places; `at` may be of one client in a stack that has one pool x."""
    x = x if isinstance(x, Pieces) else _stored(x)
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


def _stored(table: Tensor | SamplesByIndex) -> Tensor:
    return table if isinstance(table, Tensor) else table.stored


def _copied(x: Tensor, at: Tensor) -> Tensor:
    # `index_select` would lose the memory format of images.
    return x[at] if x.dim() > 2 else x.index_select(0, at)
