"""Named tensors with arithmetic, so that update rules in code look as they do in the papers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from methods.core.numbers import Number
from methods.fast import tensor_lists
from methods.fast.norms import squared_distance, sum_of_squares
from methods.fast.pytrees import register_pytree_node
from methods.fast.vmap_levels import in_stack


class Tree(Mapping[str, Tensor]):
    """An immutable mapping from names to tensors with + − × ÷, `dot`, `sqnorm` and `sqdist`.

    Integer tensors (such as the step counters of batch norm) take no part in sums: every operation passes
    them on from its left operand.
    """

    __slots__ = ("_leaves",)

    def __init__(self, leaves: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        self._leaves: dict[str, Tensor] = dict(leaves)

    def __getitem__(self, name: str) -> Tensor:
        return self._leaves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._leaves)

    def __len__(self) -> int:
        return len(self._leaves)

    def __repr__(self) -> str:
        return f"Tree({', '.join(f'{name}{tuple(leaf.shape)}' for name, leaf in self.items())})"

    def keys(self) -> Any:
        return self._leaves.keys()

    def items(self) -> Any:
        return self._leaves.items()

    def values(self) -> Any:
        return self._leaves.values()

    def as_dict(self) -> dict[str, Tensor]:
        return self._leaves

    def map(self, function: Callable[..., Tensor], *others: Tree) -> Tree:
        """Apply a function to every floating-point leaf (and its counterparts in the other trees)."""
        return Tree(
            {
                name: function(leaf, *(other[name] for other in others)) if leaf.is_floating_point() else leaf
                for name, leaf in self._leaves.items()
            }
        )

    def _combine(self, other: Tree | Number, function: Callable[..., Tensor]) -> Tree:
        if isinstance(other, Tree):
            return self.map(function, other)
        return self.map(lambda leaf: function(leaf, other))

    def __add__(self, other: Tree | Number) -> Tree:
        return self._combine(other, operator.add)

    def __sub__(self, other: Tree | Number) -> Tree:
        return self._combine(other, operator.sub)

    def __mul__(self, other: Tree | Number) -> Tree:
        return self._combine(other, operator.mul)

    def __truediv__(self, other: Tree | Number) -> Tree:
        return self._combine(other, operator.truediv)

    def __neg__(self) -> Tree:
        return self.map(operator.neg)

    __radd__ = __add__
    __rmul__ = __mul__

    def __or__(self, other: Tree) -> Tree:
        """The union of both; the right one wins."""
        return Tree(self._leaves | other._leaves)

    def only(self, names: Iterable[str]) -> Tree:
        """The named leaves, in this tree's order: a set of names has another in every process."""
        wanted = set(names)
        if missing := wanted - self._leaves.keys():
            raise KeyError(f"no such leaves: {', '.join(sorted(missing))}")
        return Tree({name: leaf for name, leaf in self._leaves.items() if name in wanted})

    def without(self, names: Iterable[str]) -> Tree:
        left_out = set(names)
        return Tree({name: leaf for name, leaf in self._leaves.items() if name not in left_out})

    def part(self, submodule: str) -> Tree:
        """The leaves of one submodule, such as `classifier`, under their full names."""
        start = submodule + "."
        return Tree({name: leaf for name, leaf in self._leaves.items() if name.startswith(start)})

    def below(self, prefix: str) -> Tree:
        """The leaves of one submodule, named as that submodule names them."""
        start = prefix + "."
        return Tree({name[len(start) :]: leaf for name, leaf in self.items() if name.startswith(start)})

    def under(self, prefix: str) -> Tree:
        """The same leaves as those of a submodule with this name; `below` undoes it."""
        return Tree({f"{prefix}.{name}": leaf for name, leaf in self._leaves.items()})

    def dot(self, other: Tree) -> Tensor:
        products = [
            (leaf * other[name]).sum() for name, leaf in self._leaves.items() if leaf.is_floating_point()
        ]
        return torch.stack(products).sum()

    def sqnorm(self) -> Tensor:
        squares = [sum_of_squares(leaf) for leaf in self._leaves.values() if leaf.is_floating_point()]
        return torch.stack(squares).sum()

    def sqdist(self, other: Tree) -> Tensor:
        """‖self − other‖², which costs less in a loss than the difference and its `sqnorm`."""
        squares = [
            squared_distance(leaf, other[name])
            for name, leaf in self._leaves.items()
            if leaf.is_floating_point()
        ]
        return torch.stack(squares).sum()

    def norm(self) -> Tensor:
        return self.sqnorm().sqrt()

    def zeros(self) -> Tree:
        return self.map(torch.zeros_like)

    def detach(self) -> Tree:
        return Tree({name: leaf.detach() for name, leaf in self._leaves.items()})

    def clone(self) -> Tree:
        """Copies of all leaves, for what writes into them, as batch norm does into its buffers."""
        return Tree({name: leaf.clone() for name, leaf in self._leaves.items()})

    def to(self, device: torch.device | str) -> Tree:
        return Tree({name: leaf.to(device) for name, leaf in self._leaves.items()})


def where(condition: Tensor, yes: Tree, no: Tree) -> Tree:
    """Leaf by leaf `yes` where the scalar condition holds, else `no`."""
    return Tree({name: torch.where(condition, leaf, no[name]) for name, leaf in yes.items()})


def weighted_sum(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """Σ w·tree, added up in the given order, so that the same replies give the same bits everywhere."""
    first, *others = [tree.as_dict() for tree in trees]
    names = [name for name, leaf in first.items() if leaf.is_floating_point()]
    if any(in_stack(first[name]) for name in names):  # where there are no operations on lists
        return trees[0] | Tree(
            {name: _sum_in_stack([tree[name] for tree in trees], weights) for name in names}
        )
    total = tensor_lists.mul([first[name] for name in names], weights[0])
    for leaves, weight in zip(others, weights[1:], strict=True):
        tensor_lists.add_(total, [leaves[name] for name in names], alpha=weight)
    return trees[0] | Tree(zip(names, total, strict=True))


def _sum_in_stack(leaves: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    total = leaves[0] * weights[0]
    for leaf, weight in zip(leaves[1:], weights[1:], strict=True):
        total.add_(leaf, alpha=weight)
    return total


def leaves_of(value: Any) -> Iterator[Tensor]:
    """Every tensor inside a nest of mappings and sequences, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Tree):
        yield from value.values()
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves_of(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves_of(item)


def size_in_bytes(value: Any) -> int:
    """The bytes of all tensors inside a nest; called for every message, so it avoids generators for speed."""
    if isinstance(value, Tensor):
        return value.nbytes
    if isinstance(value, Tree):
        return sum([leaf.nbytes for leaf in value.as_dict().values()])
    if isinstance(value, dict):
        return sum([size_in_bytes(item) for item in value.values()])
    return sum([size_in_bytes(item) for item in value]) if isinstance(value, (list, tuple)) else 0


def _flatten(tree: Tree) -> tuple[list[Tensor], tuple[str, ...]]:
    return list(tree.values()), tuple(tree)


def _unflatten(leaves: Iterable[Any], names: Any) -> Tree:
    return Tree(zip(names, leaves, strict=True))


register_pytree_node(Tree, _flatten, _unflatten, serialized_type_name="methods.core.tree.Tree")
