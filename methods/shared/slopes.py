"""How losses change with inputs or parameters, in a form that can be trained on and stacked."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from methods.base import Tree


def with_slopes(
    losses: Callable[[Tensor], tuple[Tensor, ...]], x: Tensor, direction: Tensor, stacked: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Losses of the samples x, and of the first kind also ⟨∇_x ℓ, direction⟩ sample by sample."""

    def summed(x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        values = losses(x)
        return values[0].sum(), values

    if stacked:
        with sdpa_kernel(SDPBackend.MATH):
            gradient, values = torch.func.grad(summed, has_aux=True)(x)
    else:  # batch norm, which is never stacked, keeps its statistics in place: `func.grad` forbids that
        x = x.detach().requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):  # the only attention that has second derivatives
            total, values = summed(x)
            (gradient,) = torch.autograd.grad(total, x, create_graph=True)
    return values, (gradient * direction).flatten(start_dim=1).sum(dim=1)


def slope(loss: Callable[[Tree], Tensor], at: Tree, stacked: bool) -> Tree:
    """∇loss at these leaves; it can be differentiated by all else that the loss depends on, not by them."""
    with sdpa_kernel(SDPBackend.MATH):
        if stacked:
            gradient: Tree = torch.func.grad(loss)(at.detach())
            return gradient
        leaves = at.map(lambda leaf: leaf.detach().requires_grad_())
        gradients = torch.autograd.grad(loss(leaves), [*leaves.values()], create_graph=True)
        return Tree(zip(leaves, gradients, strict=True))
