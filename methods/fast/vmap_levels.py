"""Stepping out of `vmap` for a moment, to do in one operation on the stack what it would do in a slower one.

There may be two levels: clients, and inside of them cells that train on the same samples. A tensor has a
dimension for each level at which it differs: samples differ between clients alone.

This needs parts of functorch that are not public. `AVAILABLE` says whether this release of torch has them;
whoever uses them has a plain way too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor

try:
    from torch._C._functorch import (
        _add_batch_dim,
        get_unwrapped,
        is_batchedtensor,
        is_functorch_wrapped_tensor,
        maybe_current_level,
        maybe_get_bdim,
        maybe_get_level,
    )
    from torch._functorch.pyfunctorch import VmapInterpreter, retrieve_all_functorch_interpreters
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack as outside
except ImportError:  # pragma: no cover - depends on the torch release
    AVAILABLE = False
else:
    AVAILABLE = True


def present() -> dict[int, int]:
    """The levels around the code that asks, outermost first: number → how many clients or cells it has."""
    return {
        each.level(): each.batch_size()
        for each in retrieve_all_functorch_interpreters()
        if isinstance(each, VmapInterpreter)
    }


def is_stacked(tensor: Tensor) -> bool:
    """Whether there are several of this tensor, for the clients or cells of a stack."""
    return AVAILABLE and is_batchedtensor(tensor)


def is_shared(tensor: Tensor) -> bool:
    """Whether it is one plain tensor for all clients and cells, which derivatives are not taken by."""
    return AVAILABLE and not is_functorch_wrapped_tensor(tensor)


def in_stack(tensor: Tensor) -> bool:
    """The same, and we are inside `vmap`s alone: `torch.func.grad` around them would miss what is outside."""
    if not is_stacked(tensor) or maybe_current_level() is None:
        return False
    while is_batchedtensor(tensor):
        tensor = get_unwrapped(tensor)
    return not is_functorch_wrapped_tensor(tensor)


def levels_of(tensor: Tensor) -> tuple[int, ...]:
    """The levels at which the tensor differs, outermost first."""
    found: list[int] = []
    while is_batchedtensor(tensor):
        found.append(maybe_get_level(tensor))
        tensor = get_unwrapped(tensor)
    return tuple(reversed(found))


def stack_of(tensor: Tensor) -> Tensor:
    """All of them: first a dimension per level of the tensor; to be used `outside`."""
    places: list[int] = []
    while is_batchedtensor(tensor):
        places.append(maybe_get_bdim(tensor))
        tensor = get_unwrapped(tensor)
    # The place at a level is counted without the dimensions of the levels around it.
    left = list(range(tensor.dim()))
    dims = [left.pop(place) for place in reversed(places)]
    return tensor if dims == list(range(len(dims))) else tensor.movedim(dims, list(range(len(dims))))


def whole_stack(tensor: Tensor, levels: Mapping[int, int]) -> Tensor:
    """The same with a dimension for every level; what does not differ there is repeated without a copy."""
    own = levels_of(tensor)
    stack = stack_of(tensor)
    if own == tuple(levels):
        return stack
    for place, number in enumerate(levels):
        if number not in own:
            stack = stack.unsqueeze(place)
    return stack.expand(*levels.values(), *stack.shape[len(levels) :])


def stretched(tensor: Tensor, levels: Sequence[int], dims: int) -> Tensor:
    """All of them, to be used `outside` with tensors that have all these levels and so many own dimensions.

    Where it does not differ there is a dimension of size 1.
    """
    own = levels_of(tensor)
    stack = stack_of(tensor)
    places = [slice(None) if number in own else None for number in levels]
    missing = dims - (stack.dim() - len(own))
    return stack[(*places, *[None] * missing)]


def one_of(stack: Tensor, levels: Iterable[int]) -> Tensor:
    """One client's (and cell's) tensor again, to be used inside; the first dimensions are these levels."""
    for number in levels:
        stack = _add_batch_dim(stack, 0, number)
    return stack


def rows_in_turn(tensor: Tensor) -> list[Tensor]:
    """One client's rows, one after the other; those of all clients lie together in memory."""
    if not in_stack(tensor):
        return list(tensor.unbind(0))
    levels = levels_of(tensor)
    with outside():
        rows = stack_of(tensor).movedim(len(levels), 0).contiguous().unbind(0)
    return [one_of(row, levels) for row in rows]


__all__ = [
    "AVAILABLE",
    "in_stack",
    "is_shared",
    "is_stacked",
    "levels_of",
    "one_of",
    "outside",
    "present",
    "rows_in_turn",
    "stack_of",
    "stretched",
    "whole_stack",
]
