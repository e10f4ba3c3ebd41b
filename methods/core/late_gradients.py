"""Parts of a gradient that are left for later and added up in one piece of memory, once autograd is done.

Autograd makes a new tensor of every part of a gradient and another one of every sum. In a stack of cells
each of them is as large as all parameters, and costs as much as a step of the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor


class Scaled(NamedTuple):
    """tensor · factor; the tensor is given away and may be overwritten."""

    tensor: Tensor
    factor: Tensor


class Product(NamedTuple):
    """left @ right, matrix by matrix; their rows, one below the other, are those of the gradient."""

    left: Tensor
    right: Tensor


Part: TypeAlias = Scaled | Product

_awaited: dict[int, list[Part]] = {}
"""Parts of the gradients that are being computed, by the identity of the leaves that these belong to."""


def postponed(leaf: Tensor, part: Part) -> bool:
    """Leave a part of the leaf's gradient for later; False if nobody would add it."""
    parts = _awaited.get(id(leaf))
    if parts is None:
        return False
    parts.append(part)
    return True


def gradients(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Of a value by these leaves, with all parts; 0 where it does not depend on them."""
    parts: list[list[Part]] = [[] for _ in leaves]
    _awaited.update(zip(map(id, leaves), parts, strict=True))
    try:
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    finally:
        for leaf in leaves:
            del _awaited[id(leaf)]
    with torch.no_grad():
        return [_sum(*each) for each in zip(leaves, grads, parts, strict=True)]


def _sum(leaf: Tensor, grad: Tensor | None, parts: Sequence[Part]) -> Tensor:
    """Never into autograd's own tensor, which may be that of other leaves too."""
    total = None
    for tensor, factor in (part for part in parts if isinstance(part, Scaled)):
        scaled = tensor.mul_(factor)
        total = scaled if total is None else total.add_(scaled)
    for left, right in (part for part in parts if isinstance(part, Product)):
        if total is None:
            total = torch.bmm(left, right).view(leaf.shape)
        else:
            total.view(*left.shape[:2], -1).baddbmm_(left, right)
    if total is None:
        return torch.zeros_like(leaf) if grad is None else grad
    return total if grad is None else total.add_(grad)
