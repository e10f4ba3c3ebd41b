"""Squared lengths and distances of tensors, with gradients that take few operations in a stack."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from methods.fast.fused_gradients import postpone_scaled
from methods.fast.vmap_levels import in_stack, is_shared, levels_of, one_of, outside, stack_of, stretched


def sum_of_squares(tensor: Tensor) -> Tensor:
    """‖x‖², one number for each client (and cell) of a stack."""
    if not in_stack(tensor):
        return (tensor * tensor).sum()
    levels = levels_of(tensor)
    with outside():
        found: Tensor = _SumOfSquares.apply(stack_of(tensor), len(levels))
    return one_of(found, levels)


def squared_distance(one: Tensor, other: Tensor) -> Tensor:
    """‖x − y‖², for x that is trained and y that is fixed, or has fewer clients and cells than x."""
    if not (in_stack(one) and (in_stack(other) or is_shared(other)) and one.shape == other.shape):
        return sum_of_squares(one - other)
    levels = levels_of(one)
    if not set(levels_of(other)) <= set(levels):
        return sum_of_squares(one - other)
    with outside():
        stack, fixed = stack_of(one), stretched(other, levels, one.dim())
        if stack.is_cpu and not fixed.requires_grad:
            return one_of(_SquaredDistance.apply(stack, fixed, len(levels)), levels)
    return sum_of_squares(one - other)


def _squares(stack: Tensor, levels: int) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(stack.reshape(*stack.shape[:levels], -1), dim=-1)
    return lengths.square()


def _spread(gradient: Tensor, like: Tensor) -> Tensor:
    """With dimensions of size 1 for those of one client's tensor."""
    return gradient[(..., *[None] * (like.dim() - gradient.dim()))]


class _SumOfSquares(torch.autograd.Function):
    """Autograd's own way, that of x · x, goes through memory twice as often."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor, levels: int) -> Tensor:
        ctx.save_for_backward(stack)
        return _squares(stack, levels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (stack,) = ctx.saved_tensors
        (gradient,) = gradients
        return stack * _spread(2 * gradient, stack), None


class _SquaredDistance(torch.autograd.Function):
    """It has the difference to itself, so the gradient can be computed in that memory."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor, fixed: Tensor, levels: int) -> Tensor:
        difference = stack - fixed
        ctx.save_for_backward(stack, fixed, difference)
        return _squares(difference, levels)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None]:
        stack, fixed, difference = ctx.saved_tensors
        (gradient,) = gradients
        factor = _spread(2 * gradient, stack)
        if torch.is_grad_enabled():  # the gradient is differentiated in turn
            return (stack - fixed) * factor, None, None
        if postpone_scaled(stack, difference, factor):
            return None, None, None
        return difference * factor, None, None
