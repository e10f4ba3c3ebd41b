"""Local training as a pure function: parameters in, parameters out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from methods.core.batches import Batch
from methods.core.optimisers import IN_PLACE, ONE_BY_ONE, Kit, Optimiser, Tensors
from methods.core.random import drawing_from
from methods.core.stacked_gradient import stacked_gradient
from methods.core.stacking import in_stack
from methods.core.tree import Tree

Loss: TypeAlias = Callable[[Tree, Batch], Tensor]

TOTAL = "loss"
"""The name under which the whole loss is recorded beside its terms."""


class Mode(NamedTuple):
    """How gradients and updates are computed: for one client at a time, or for a stack inside `vmap`."""

    gradient: Callable[[Loss, list[str], Tensors, dict[str, Tensor], Batch], Tensors]
    own: Callable[[Tensor], Tensor]
    kit: Kit


def _gradient_of_one(
    loss: Loss, names: list[str], params: Tensors, fixed: dict[str, Tensor], batch: Batch
) -> Tensors:
    leaves = [param.detach().requires_grad_() for param in params]
    value = batch.term(TOTAL, loss(Tree({**fixed, **dict(zip(names, leaves, strict=True))}), batch))
    return list(torch.autograd.grad(value, leaves, materialize_grads=True))


def _gradient_in_stack(
    loss: Loss, names: list[str], params: Tensors, fixed: dict[str, Tensor], batch: Batch
) -> Tensors:
    def value(leaves: Tensors, batch: Batch = batch) -> Tensor:
        return batch.term(TOTAL, loss(Tree({**fixed, **dict(zip(names, leaves, strict=True))}), batch))

    if batch.terms is not None and not in_stack(batch.y):  # no value gets out of `torch.func.grad` but this
        with torch.no_grad():
            value(params)
        batch = batch._replace(terms=None)
        return stacked_gradient(lambda leaves: value(leaves, batch), params, like=batch.y)
    return stacked_gradient(value, params, like=batch.y)


ONE_CLIENT = Mode(gradient=_gradient_of_one, own=torch.clone, kit=IN_PLACE)
STACKED = Mode(gradient=_gradient_in_stack, own=lambda leaf: leaf, kit=ONE_BY_ONE)


def train(
    start: Tree,
    loss: Loss,
    batches: Iterable[Batch],
    optimiser: Optimiser,
    trainable: Collection[str] | None = None,
    mode: Mode = ONE_CLIENT,
) -> Tree:
    """Take one optimiser step per batch on the trainable leaves; a padded step changes nothing."""
    names = [name for name in start if trainable is None or name in trainable]
    params = [mode.own(start[name]) for name in names]
    fixed = {name: mode.own(leaf) for name, leaf in start.without(names).items()}
    rates = optimiser.rates(names)
    memory = optimiser.start(params)
    for batch in batches:
        with drawing_from(batch.key):
            grads = mode.gradient(loss, names, params, fixed, batch)
        moved = optimiser.step(params, grads, memory, rates, mode.kit)
        params, memory = moved if batch.live is None else _choose(batch.live, moved, (params, memory))
        del batch, grads, moved  # so that the next step's samples may take their place in the cache
    trained = {**dict(zip(names, params, strict=True)), **fixed}
    return Tree({name: trained[name] for name in start})


def minimise(start: Tree, loss: Callable[[Tree], Tensor], steps: int, optimiser: Optimiser) -> Tree:
    """Full-gradient descent on a function of the parameters alone, as servers do it."""
    nothing = Batch(torch.empty(0), torch.empty(0))
    return train(start, lambda params, _: loss(params), repeat(nothing, steps), optimiser)


def _choose(live: Tensor, new: Any, old: Any) -> Any:
    return pytree.tree_map(lambda a, b: torch.where(live, a, b), new, old)
