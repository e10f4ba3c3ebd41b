"""How losses change with their inputs, in a form that can be trained on and stacked."""

from collections.abc import Callable

import torch
from torch import Tensor


def with_slopes(
    losses: Callable[[Tensor], tuple[Tensor, ...]], x: Tensor, direction: Tensor, stacked: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Losses of the samples x, and of the first kind also ⟨∇_x ℓ, direction⟩ sample by sample."""
    if stacked:
        values, slopes = torch.func.jvp(losses, (x,), (direction.expand_as(x),))[:2]
        return values, slopes[0]
    # Batch norm, which is never stacked, keeps its statistics in place: `jvp` does not allow that.
    x = x.detach().requires_grad_()
    values = losses(x)
    (gradient,) = torch.autograd.grad(values[0].sum(), x, create_graph=True)
    return values, (gradient * direction).flatten(start_dim=1).sum(dim=1)
