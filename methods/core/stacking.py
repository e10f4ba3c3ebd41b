"""Stepping out of `vmap` for a moment, to do in one operation on the stack what it would do in a slower one.

This needs parts of functorch that are not public. `AVAILABLE` says whether this release of torch has them;
whoever uses them has a plain way too.
"""

from __future__ import annotations

from torch import Tensor

try:
    from torch._C._functorch import (
        _add_batch_dim,
        get_unwrapped,
        is_batchedtensor,
        maybe_current_level,
        maybe_get_bdim,
    )
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack as outside
except ImportError:  # pragma: no cover - depends on the torch release
    AVAILABLE = False
else:
    AVAILABLE = True


def is_stacked(tensor: Tensor) -> bool:
    """Whether every client of the stack has a tensor of its own there."""
    return AVAILABLE and is_batchedtensor(tensor)


def in_stack(tensor: Tensor) -> bool:
    """The same, and we are inside `vmap`."""
    return is_stacked(tensor) and maybe_current_level() is not None


def stack_of(tensor: Tensor) -> Tensor:
    """All clients' tensors, first dimension the client; to be used `outside`."""
    stack, dim = get_unwrapped(tensor), maybe_get_bdim(tensor)
    return stack if dim == 0 else stack.movedim(dim, 0)


def one_of(stack: Tensor) -> Tensor:
    """One client's tensor again, to be used inside."""
    level = maybe_current_level()
    assert level is not None, "not inside vmap"
    return _add_batch_dim(stack, 0, level)


def rows_in_turn(tensor: Tensor) -> list[Tensor]:
    """One client's rows, one after the other; those of all clients lie together in memory."""
    if not in_stack(tensor):
        return list(tensor.unbind(0))
    with outside():
        rows = stack_of(tensor).transpose(0, 1).contiguous().unbind(0)
    return [one_of(row) for row in rows]


__all__ = ["AVAILABLE", "in_stack", "is_stacked", "one_of", "outside", "rows_in_turn", "stack_of"]
