"""Clients, and cells that train them on the same samples, as one call of a function of one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import vmap

from methods.core.tree import Tree


class Slot(NamedTuple):
    """Stands in a nest for a tensor that differs between the clients or cells."""

    position: int


class Stack:
    """Collects what differs between clients or cells; what they share is neither copied nor stacked.

    With one cell there is one level, the clients. With several, cells are a second level inside of it, and
    what is the same for all cells, such as the samples, has no dimension there.
    """

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self._tensors: list[Tensor] = []
        self._by_client: list[int | None] = []
        self._by_cell: list[int | None] = []

    def add(self, items: Sequence[Sequence[Any]]) -> Any:
        """One nest for all, from those of every client in every cell, with slots where they differ."""
        first = items[0][0]
        if all(item is first for of_cell in items for item in of_cell):
            return first
        alike = all(item is of_cell[0] for of_cell in items for item in of_cell)
        if alike and len(items[0]) > 1 and self.cells > 1:  # one stands for all clients of a cell
            return self.add([of_cell[:1] for of_cell in items])
        if not isinstance(first, Tensor):
            if any(item.keys() != first.keys() for of_cell in items for item in of_cell):
                raise ValueError("states or messages have different entries in cells of one stack")
            return type(first)({key: self.add(_entries(items, key)) for key in first})
        if self.cells == 1:
            return self._slot(torch.stack(list(items[0])), by_cell=False)
        if alike:
            return self._slot(torch.stack([of_cell[0] for of_cell in items]), by_client=False)
        by_client = [torch.stack(list(of_client)) for of_client in zip(*items, strict=True)]
        return self._slot(torch.stack(by_client))

    def add_by_client(self, tensors: Mapping[Any, Tensor | None]) -> dict[Any, Slot | None]:
        """What is the same for all cells; the first dimension of every tensor is the client."""
        return {
            key: None if tensor is None else self._slot(tensor, by_cell=False)
            for key, tensor in tensors.items()
        }

    def add_by_cell(self, tensors: Mapping[Any, Tensor]) -> dict[Any, Slot]:
        """What is the same for all clients; the first dimension of every tensor is the cell."""
        return {key: self._slot(tensor, by_client=False) for key, tensor in tensors.items()}

    def mapped(self, function: Callable[..., Any]) -> Any:
        """The results of a function of the slots' tensors, clients (then cells) first."""
        if self.cells > 1:
            if not any(
                place == 0 for place in self._by_cell
            ):  # equal cells; `vmap` needs something to map over
                self._slot(torch.zeros(self.cells), by_client=False)
            function = vmap(function, in_dims=tuple(self._by_cell))
        return vmap(function, in_dims=tuple(self._by_client))(*self._tensors)

    def _slot(self, tensor: Tensor, by_client: bool = True, by_cell: bool = True) -> Slot:
        self._tensors.append(tensor)
        self._by_client.append(0 if by_client else None)
        self._by_cell.append(0 if by_cell else None)
        return Slot(len(self._tensors) - 1)


def _entries(items: Sequence[Sequence[Any]], key: Any) -> list[list[Any]]:
    return [[item[key] for item in of_cell] for of_cell in items]


def fill(nest: Any, tensors: Sequence[Any]) -> Any:
    """The nest with every slot replaced by its tensor, or by another slot."""
    if isinstance(nest, Slot):
        return tensors[nest.position]
    if isinstance(nest, (dict, Tree)):
        return type(nest)({key: fill(item, tensors) for key, item in nest.items()})
    if isinstance(nest, list):
        return [fill(item, tensors) for item in nest]
    return nest


def leaves_in(nest: Any) -> Iterator[Any]:
    """The tensors or slots inside a nest, in order."""
    if isinstance(nest, (dict, Tree)):
        for item in nest.values():
            yield from leaves_in(item)
    else:
        yield nest


def refill(nest: Any, leaves: Iterator[Any]) -> Any:
    """A nest of the same shape with other leaves, in order."""
    if isinstance(nest, Tree):
        return Tree(dict(zip(nest, leaves, strict=False)))
    if isinstance(nest, dict):
        return {key: refill(item, leaves) for key, item in nest.items()}
    return next(leaves)


def finite_rows(tensors: Sequence[Tensor], count: int) -> list[bool]:
    """Row by row (first dimension) whether all its numbers are finite."""
    sums = [leaf.reshape(count, -1).sum(dim=1) for leaf in tensors if leaf.is_floating_point()]
    return torch.isfinite(torch.stack(sums)).all(dim=0).tolist() if sums else [True] * count
