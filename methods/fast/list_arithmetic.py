"""Arithmetic on lists of tensors, for optimisers, in few operations and little memory.

In place on whole lists where the tensors are one client's own; one by one in a stack on a CPU, in place from
the second step on. In a stack on a GPU a list has one vector of all parameters, since each operation costs a
launch.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from methods.fast import tensor_lists
from methods.fast.vmap_levels import levels_of, outside, stack_of, stretched

if TYPE_CHECKING:
    from methods.core.numbers import Number


class ListArithmetic(NamedTuple):
    """Sums and multiples; `into` may overwrite its first argument, which belongs to the optimiser."""

    add: Callable[..., Any]
    add_into: Callable[..., Any]
    add_over: Callable[..., Any]
    """The same, and it may overwrite the second argument instead."""
    scale_into: Callable[..., Any]
    norm: Callable[[list[Tensor]], Tensor]
    """The length of all tensors of a list together."""
    is_vector: bool = False
    """Whether the lists have one vector each."""


def _add_into_lists(target: list[Tensor], other: list[Tensor], alpha: float) -> list[Tensor]:
    tensor_lists.add_(target, other, alpha=alpha)
    return target


def _scale_into_lists(target: list[Tensor], factor: float) -> list[Tensor]:
    tensor_lists.mul_(target, factor)
    return target


def add_each(target: list[Tensor], other: list[Tensor], alpha: Number) -> list[Tensor]:
    if isinstance(alpha, Tensor):
        return [torch.addcmul(a, b, alpha) for a, b in zip(target, other, strict=True)]
    return [torch.add(a, b, alpha=alpha) for a, b in zip(target, other, strict=True)]


def _add_into_each(target: list[Tensor], other: list[Tensor], alpha: Number) -> list[Tensor]:
    """On the whole stack, as `vmap` has no such operation with a factor per client or cell."""
    kinds = [(levels_of(a), a.dim()) for a in target]
    with outside():
        for a, b, kind in zip(target, other, kinds, strict=True):
            if isinstance(alpha, Tensor):
                stack_of(a).addcmul_(stretched(b, *kind), stretched(alpha, *kind))
            else:
                stack_of(a).add_(stretched(b, *kind), alpha=alpha)
    return target


def _add_over_each(target: list[Tensor], other: list[Tensor], alpha: Number) -> list[Tensor]:
    """Into the memory of `other` where it is a stack's own, which is still in the processor's cache.

    Only in a stack of cells, whose tensors are large.
    """
    kinds = [(levels_of(b), b.dim()) for b in other]
    if any(len(levels) < 2 for levels, _ in kinds):
        return add_each(target, other, alpha)
    needed = {*(levels_of(alpha) if isinstance(alpha, Tensor) else ()), *chain(*map(levels_of, target))}
    with outside():
        stacks = [stack_of(b) for b in other]
        separate = len({stack.data_ptr() for stack in stacks}) == len(stacks)
        if separate and all(
            needed <= set(levels) and stack.is_contiguous()
            for (levels, _), stack in zip(kinds, stacks, strict=True)
        ):
            for a, stack, kind in zip(target, stacks, kinds, strict=True):
                if isinstance(alpha, Tensor):
                    torch.addcmul(stretched(a, *kind), stack, stretched(alpha, *kind), out=stack)
                else:
                    torch.add(stretched(a, *kind), stack, alpha=alpha, out=stack)
            return other
    return add_each(target, other, alpha)


def _norm_of_lists(tensors: list[Tensor]) -> Tensor:
    return torch.stack([each.square().sum() for each in tensors]).sum().sqrt()


IN_PLACE = ListArithmetic(
    add=lambda a, b, alpha: tensor_lists.add(a, b, alpha=alpha),
    add_into=_add_into_lists,
    add_over=_add_into_lists,
    scale_into=_scale_into_lists,
    norm=_norm_of_lists,
)
ONE_BY_ONE = ListArithmetic(
    add=add_each,
    add_into=add_each,
    add_over=_add_over_each,
    scale_into=lambda a, factor: [leaf * factor for leaf in a],
    norm=_norm_of_lists,
)
ONE_BY_ONE_IN_PLACE = ONE_BY_ONE._replace(
    add_into=_add_into_each,
    add_over=_add_into_each,
    scale_into=lambda a, factor: [leaf.mul_(factor) for leaf in a],
)
"""For tensors of a stack that nothing else refers to, each with a value per client and cell."""
VECTOR = ListArithmetic(
    add=add_each,
    add_into=add_each,
    add_over=add_each,
    scale_into=lambda a, factor: [leaf * factor for leaf in a],
    norm=lambda vectors: torch.linalg.vector_norm(vectors[0]),
    is_vector=True,
)
