"""A linear layer whose stacked form multiplies in the faster order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from methods.fast.fused_gradients import postpone_product
from methods.fast.vmap_levels import in_stack, is_shared, levels_of, one_of, outside, stack_of


class Linear(nn.Linear):
    """`nn.Linear`, computed as (W xᵀ)ᵀ where every client of a stack has weights of its own.

    The gradient of W is then (∂L/∂logits)ᵀ x with x as it lies in memory; in the usual order it is computed
    as its transpose, from a transposed x, which takes more than three times as long for narrow layers. Cells
    that share their samples have their weights side by side, so that many narrow products are one wide one.
    """

    alike_in_training = True

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or self.bias is None or not all(map(in_stack, (self.weight, self.bias))):
            return super().forward(x)
        if not (in_stack(x) or is_shared(x)):
            return super().forward(x)
        levels, shared = levels_of(self.weight), levels_of(x)
        if levels != levels_of(self.bias) or shared not in (levels, levels[:-1]):
            return super().forward(x)
        with outside():  # as one operation on the stack, where `vmap` makes ten of it
            operands = stack_of(self.weight), stack_of(self.bias), stack_of(x)
            late = shared != levels and _has_late_gradient(operands[0])
            out = _ProductOfCells.apply(*operands) if late else _product(*operands)
        return one_of(out, levels).mT


def _product(weights: Tensor, biases: Tensor, inputs: Tensor) -> Tensor:
    """W xᵀ + b; cells that share their inputs have their weights one below the other."""
    stacks = inputs.shape[:-2].numel()
    product = torch.baddbmm(
        biases.reshape(stacks, -1, 1),
        weights.reshape(stacks, -1, weights.shape[-1]),
        inputs.reshape(stacks, *inputs.shape[-2:]).mT,
    )
    return product.view(*biases.shape, inputs.shape[-2])


def _has_late_gradient(weights: Tensor) -> bool:
    """Whether it may be worthwhile: on a GPU gradients are gathered in a vector anyway."""
    trained = weights.is_leaf and weights.requires_grad
    return trained and weights.is_cpu and not torch.is_autocast_enabled("cpu")


class _ProductOfCells(torch.autograd.Function):
    """The same; the gradient of the weights can be added to what is there, as part of the product."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, biases: Tensor, inputs: Tensor) -> Tensor:
        ctx.save_for_backward(weights, inputs)
        return _product(weights, biases, inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        weights, inputs = ctx.saved_tensors
        (gradient,) = gradients
        stacks = inputs.shape[:-2].numel()
        by_stack = gradient.reshape(stacks, -1, gradient.shape[-1])
        of_weights, of_inputs = None, None
        inputs_by_stack = inputs.reshape(stacks, *inputs.shape[-2:])
        if not postpone_product(weights, by_stack, inputs_by_stack):
            of_weights = torch.bmm(by_stack, inputs_by_stack).view(weights.shape)
        if ctx.needs_input_grad[2]:
            rows = weights.reshape(stacks, -1, weights.shape[-1])
            of_inputs = torch.bmm(rows.mT, by_stack).mT.reshape(inputs.shape)
        return of_weights, gradient.sum(dim=-1), of_inputs
