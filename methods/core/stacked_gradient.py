"""The gradients of all clients of a stack, from inside `vmap`.

`torch.func.grad` is the plain way and the fallback. The quick way lifts the
clients' parameters out of `vmap`, lets ordinary autograd record the loss of the whole stack, and
differentiates the sum of the losses once: client k's loss depends on client k's parameters alone, so each
gets its own gradient. That saves a fifth of the time of a small step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from methods.core.stacking import in_stack, is_stacked, one_of, outside, stack_of

Value: TypeAlias = Callable[[list[Tensor]], Tensor]


def stacked_gradient(value: Value, params: list[Tensor], like: Tensor) -> list[Tensor]:
    """`like` is any tensor of the stack; it tells how many clients there are."""
    return quick_gradient(value, params, like) if in_stack(like) else plain_gradient(value, params)


def plain_gradient(value: Value, params: list[Tensor]) -> list[Tensor]:
    grads: list[Tensor] = torch.func.grad(value)(params)
    return grads


def quick_gradient(value: Value, params: list[Tensor], like: Tensor) -> list[Tensor]:
    with outside():
        count = len(stack_of(like))
        leaves = [_lifted(param, count).detach().requires_grad_() for param in params]
    loss = value([one_of(leaf) for leaf in leaves])
    with outside():
        grads = torch.autograd.grad(stack_of(loss).sum(), leaves, materialize_grads=True)
    return [one_of(grad) for grad in grads]


def vector_gradient(
    value: Value, vector: Tensor, shapes: Sequence[torch.Size], like: Tensor, one: Tensor
) -> Tensor:
    """The gradient in one vector of all parameters; `value` takes them in their shapes.

    `one` is the number 1, made once for many steps.
    """
    sizes = [shape.numel() for shape in shapes]
    if not in_stack(like):
        return plain_gradient(lambda whole: value(parts_of(whole[0], shapes)), [vector])[0]
    with outside():
        count = len(stack_of(like))
        pieces = _lifted(vector, count).detach().split(sizes, dim=1)
        leaves = [
            piece.view(count, *shape).requires_grad_() for piece, shape in zip(pieces, shapes, strict=True)
        ]
    loss = value([one_of(leaf) for leaf in leaves])
    with outside():
        losses = stack_of(loss)
        grads = torch.autograd.grad(losses, leaves, one.expand_as(losses), materialize_grads=True)
        whole = torch.empty(count, sum(sizes), dtype=vector.dtype, device=losses.device)
        places = [
            part.view(count, *shape) for part, shape in zip(whole.split(sizes, dim=1), shapes, strict=True)
        ]
        torch._foreach_copy_(places, list(grads))
    return one_of(whole)


def parts_of(vector: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Parameters in their shapes, from the vector of all."""
    pieces = vector.split([shape.numel() for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def _lifted(param: Tensor, count: int) -> Tensor:
    """The parameters of all clients; a shared one is repeated without a copy."""
    if is_stacked(param):
        return stack_of(param)
    return param.unsqueeze(0).expand(count, *param.shape)
