"""Parts of a gradient that are left for later and added up in one piece of memory, once autograd is done.

Autograd makes a new tensor of every part of a gradient and another one of every sum. In a stack of cells
each of them is as large as all parameters, and costs as much as a step of the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class _Postponed:
    """Parts of one leaf's gradient, as pairs of tensors."""

    def __init__(self) -> None:
        self.scaled: list[tuple[Tensor, Tensor]] = []
        self.products: list[tuple[Tensor, Tensor]] = []


_awaited: dict[int, _Postponed] = {}
"""Parts of the gradients that are being computed, by the identity of the leaves that these belong to."""


def postpone_scaled(leaf: Tensor, tensor: Tensor, factor: Tensor) -> bool:
    """Leave tensor · factor, a part of the leaf's gradient, for later; False if nobody would add it.

    The tensor is given away and may be overwritten.
    """
    parts = _awaited.get(id(leaf))
    if parts is not None:
        parts.scaled.append((tensor, factor))
    return parts is not None


def postpone_product(leaf: Tensor, left: Tensor, right: Tensor) -> bool:
    """The same with left @ right, matrix by matrix; their rows, one below the other, are the gradient's."""
    parts = _awaited.get(id(leaf))
    if parts is not None:
        parts.products.append((left, right))
    return parts is not None


def gradients(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Of a value by these leaves, with all parts; 0 where it does not depend on them."""
    parts = [_Postponed() for _ in leaves]
    _awaited.update(zip(map(id, leaves), parts, strict=True))
    try:
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    finally:
        for leaf in leaves:
            del _awaited[id(leaf)]
    with torch.no_grad():
        return [_sum(*each) for each in zip(leaves, grads, parts, strict=True)]


def _sum(leaf: Tensor, grad: Tensor | None, parts: _Postponed) -> Tensor:
    """Never into autograd's own tensor, which may be that of other leaves too."""
    total = None
    for tensor, factor in parts.scaled:
        scaled = tensor.mul_(factor)
        total = scaled if total is None else total.add_(scaled)
    for left, right in parts.products:
        if total is None:
            total = torch.bmm(left, right).view(leaf.shape)
        else:
            total.view(*left.shape[:2], -1).baddbmm_(left, right)
    if total is None:
        return torch.zeros_like(leaf) if grad is None else grad
    return total if grad is None else total.add_(grad)
