"""A linear layer whose stacked form multiplies in the quicker order."""

from __future__ import annotations

from torch import Tensor, nn

from methods.parts.stack_level import in_stack


class Linear(nn.Linear):
    """`nn.Linear`, computed as (W xᵀ)ᵀ where every client of a stack has weights of its own.

    The gradient of W is then (∂L/∂logits)ᵀ x with x as it lies in memory; in the usual order it is computed
    as its transpose, from a transposed x, which takes more than three times as long for narrow layers.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or not in_stack(self.weight):
            return super().forward(x)
        out = self.weight @ x.mT
        return (out if self.bias is None else out + self.bias[:, None]).mT
