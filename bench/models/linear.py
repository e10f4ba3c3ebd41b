"""A linear layer whose stacked form multiplies in the faster order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from methods.core.stacking import in_stack, is_shared, levels_of, one_of, outside, stack_of


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
            weights, biases, inputs = stack_of(self.weight), stack_of(self.bias), stack_of(x)
            shape = (*biases.shape, inputs.shape[-2])
            if shared != levels:  # the cells' weights one below the other
                weights, biases = weights.flatten(-3, -2), biases.flatten(-2, -1)
            out = torch.baddbmm(
                biases.reshape(-1, biases.shape[-1], 1),
                weights.reshape(-1, *weights.shape[-2:]),
                inputs.reshape(-1, *inputs.shape[-2:]).mT,
            ).view(shape)
        return one_of(out, levels).mT
