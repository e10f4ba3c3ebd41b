"""Parts of a gradient that are left for later and added up in one piece of memory, once autograd is done.

Autograd makes a new tensor of every part of a gradient and another one of every sum. In a stack of cells
each of them is as large as all parameters, and costs as much as a step of the optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_scaled: dict[int, list[tuple[Tensor, Tensor]]] = {}
_products: dict[int, list[tuple[Tensor, Tensor]]] = {}
"""Parts of the gradients that are being computed, by the identity of the leaves that these belong to."""


def postpone_scaled(leaf: Tensor, tensor: Tensor, factor: Tensor) -> bool:
    """Leave tensor · factor, a part of the leaf's gradient, for later; False if nobody would add it.

    The tensor is given away and may be overwritten.
    """
    parts = _scaled.get(id(leaf))
    if parts is not None:
        parts.append((tensor, factor))
    return parts is not None


def postpone_product(leaf: Tensor, left: Tensor, right: Tensor) -> bool:
    """The same with left @ right, matrix by matrix; their rows, one below the other, are the gradient's."""
    parts = _products.get(id(leaf))
    if parts is not None:
        parts.append((left, right))
    return parts is not None


def gradients(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Of a value by these leaves, with all parts; 0 where it does not depend on them."""
    for leaf in leaves:
        _scaled[id(leaf)], _products[id(leaf)] = [], []
    try:
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
    finally:
        parts = [(_scaled.pop(id(leaf)), _products.pop(id(leaf))) for leaf in leaves]
    with torch.no_grad():
        return [_sum(leaf, grad, *each) for leaf, grad, each in zip(leaves, grads, parts, strict=True)]


def _sum(
    leaf: Tensor,
    grad: Tensor | None,
    scaled: Sequence[tuple[Tensor, Tensor]],
    products: Sequence[tuple[Tensor, Tensor]],
) -> Tensor:
    """Never into autograd's own tensor, which may be that of other leaves too."""
    total = None
    for tensor, factor in scaled:
        part = tensor.mul_(factor)
        total = part if total is None else total.add_(part)
    for left, right in products:
        if total is None:
            total = torch.bmm(left, right).view(leaf.shape)
        else:
            total.view(*left.shape[:2], -1).baddbmm_(left, right)
    if total is None:
        return torch.zeros_like(leaf) if grad is None else grad
    return total if grad is None else total.add_(grad)
