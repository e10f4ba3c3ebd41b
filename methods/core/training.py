"""Local training as a pure function: parameters in, parameters out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from methods.core.batches import Batch
from methods.core.numbers import Number
from methods.core.optimisers import Optimiser, Rates, WithPlainSteps
from methods.core.random import drawing_from
from methods.core.tree import Tree
from methods.fast.list_arithmetic import IN_PLACE, ONE_BY_ONE, ONE_BY_ONE_IN_PLACE, VECTOR
from methods.fast.pytrees import tree_map
from methods.fast.stacked_gradient import parts_of, stacked_gradient, vector_gradient
from methods.fast.vmap_levels import in_stack

Loss: TypeAlias = Callable[[Tree, Batch], Tensor]
Rule: TypeAlias = Optimiser | WithPlainSteps

TOTAL = "loss"
"""The name under which the whole loss is recorded beside its terms."""
SCALE = 1024.0
"""Of a loss whose gradients are computed in float16."""


class Mode(NamedTuple):
    """How gradients and updates are computed: for one client at a time, or for a stack inside `vmap`."""

    train: Callable[[_Aim, list[Tensor], Iterable[Batch], Rule], list[Tensor]]
    """From the leaves to train to the trained leaves."""
    gradient: Callable[[Loss, list[str], list[Tensor], dict[str, Tensor], Batch], list[Tensor]]
    """Of a loss at one batch, from names, leaves to differentiate by and fixed leaves."""
    own: Callable[[Tensor], Tensor]
    """A copy of a fixed leaf where layers may write into it, as batch norm does."""
    precision: torch.dtype | None = None
    """What losses and gradients are computed in where that is safe; None: as the numbers come."""


class PlainSteps(NamedTuple):
    """Leaves that take plain gradient steps beside those that an optimiser moves."""

    names: Collection[str]
    rate: Number


class _Aim(NamedTuple):
    """What is minimised."""

    loss: Loss
    names: list[str]
    fixed: dict[str, Tensor]
    precision: torch.dtype | None

    @property
    def scale(self) -> float:
        """What the loss is multiplied by, since small gradients would be 0 in float16."""
        return SCALE if self.precision == torch.float16 else 1.0

    def value(self, batch: Batch, leaves: list[Tensor]) -> Tensor:
        """The loss, times the scale."""
        params = Tree({**self.fixed, **dict(zip(self.names, leaves, strict=True))})
        if self.precision is None:
            with drawing_from(batch.key):
                return batch.term(TOTAL, self.loss(params, batch))
        with drawing_from(batch.key), torch.autocast(batch.y.device.type, self.precision):
            value = self.loss(params, batch).float()
        value = batch.term(TOTAL, value)
        return value if self.scale == 1 else value * self.scale

    def gradient(self, batch: Batch, params: list[Tensor]) -> list[Tensor]:
        """For one client."""
        leaves = [param.detach().requires_grad_() for param in params]
        grads = torch.autograd.grad(self.value(batch, leaves), leaves, materialize_grads=True)
        return self.unscaled(list(grads))

    def unscaled(self, grads: list[Tensor]) -> list[Tensor]:
        return grads if self.scale == 1 else [grad / self.scale for grad in grads]


def _gradient_of_one(
    loss: Loss, names: list[str], params: list[Tensor], fixed: dict[str, Tensor], batch: Batch
) -> list[Tensor]:
    return _Aim(loss, names, fixed, None).gradient(batch, params)


def _gradient_in_stack(
    loss: Loss, names: list[str], params: list[Tensor], fixed: dict[str, Tensor], batch: Batch
) -> list[Tensor]:
    aim = _Aim(loss, names, fixed, None)
    return stacked_gradient(partial(aim.value, batch), params, like=batch.y)


def _train_one(aim: _Aim, params: list[Tensor], batches: Iterable[Batch], optimiser: Rule) -> list[Tensor]:
    params = [param.clone() for param in params]
    rates = optimiser.rates(aim.names)
    memory = optimiser.start(params)
    for batch in batches:
        grads = aim.gradient(batch, params)
        moved = optimiser.step(params, grads, memory, rates, IN_PLACE)
        params, memory = moved if batch.live is None else _choose(batch.live, moved, (params, memory))
        del batch, grads, moved  # so that the next step's samples may take their place
    return params


def _train_stack(aim: _Aim, params: list[Tensor], batches: Iterable[Batch], optimiser: Rule) -> list[Tensor]:
    """Leaf by leaf, which is quicker on a CPU: copying gradients together costs more than operations."""
    rates = optimiser.rates(aim.names)
    memory = optimiser.start(params)
    are_own = False  # the first parameters belong to the message
    for batch in batches:
        if batch.terms is not None and not in_stack(batch.y):  # no value but this gets out of torch.func.grad
            with torch.no_grad():
                aim.value(batch, params)
            batch = batch.unrecorded()
        grads = aim.unscaled(stacked_gradient(partial(aim.value, batch), params, like=batch.y))
        kit = ONE_BY_ONE_IN_PLACE if are_own and batch.live is None else ONE_BY_ONE
        moved = optimiser.step(params, grads, memory, rates, kit)
        params, memory = moved if batch.live is None else _choose(batch.live, moved, (params, memory))
        are_own = in_stack(batch.y)
        del batch, grads, moved
    return params


def _train_vectors(
    aim: _Aim, params: list[Tensor], batches: Iterable[Batch], optimiser: Rule
) -> list[Tensor]:
    """One vector holds all parameters of a client, so that an update takes a few operations in all."""
    shapes = [param.shape for param in params]
    vector = torch.cat([param.reshape(-1) for param in params])
    rates = _rates_of_vector(optimiser.rates(aim.names), shapes, vector)
    memory = optimiser.start([vector])
    one = torch.ones((), dtype=vector.dtype, device=vector.device)
    for batch in batches:
        if batch.terms is not None and not in_stack(batch.y):  # no value but this gets out of torch.func.grad
            with torch.no_grad():
                aim.value(batch, parts_of(vector, shapes))
            batch = batch.unrecorded()
        grads = vector_gradient(partial(aim.value, batch), vector, shapes, like=batch.y, one=one)
        moved = optimiser.step([vector], aim.unscaled([grads]), memory, rates, VECTOR)
        (vector,), memory = moved if batch.live is None else _choose(batch.live, moved, ([vector], memory))
        del batch, grads, moved
    return parts_of(vector, shapes)


def _rates_of_vector(rates: list[Number], shapes: Sequence[torch.Size], like: Tensor) -> Rates:
    if len(set(rates)) == 1:
        return rates[:1]
    return torch.cat(
        [
            rate.expand(shape.numel()) if isinstance(rate, Tensor) else like.new_full((shape.numel(),), rate)
            for rate, shape in zip(rates, shapes, strict=True)
        ]
    )


ONE_CLIENT = Mode(_train_one, _gradient_of_one, own=torch.clone)
STACKED = Mode(_train_stack, _gradient_in_stack, own=lambda leaf: leaf)
STACKED_ON_GPU = STACKED._replace(train=_train_vectors)


def train(
    start: Tree,
    loss: Loss,
    batches: Iterable[Batch],
    optimiser: Optimiser,
    trainable: Collection[str] | None = None,
    mode: Mode = ONE_CLIENT,
    plain: PlainSteps | None = None,
) -> Tree:
    """Take one optimiser step per batch on the trainable leaves; a padded step changes nothing."""
    names = [name for name in start if trainable is None or name in trainable]
    fixed = {name: mode.own(leaf) for name, leaf in start.without(names).items()}
    rule: Rule = optimiser
    if plain is not None:
        names.sort(key=lambda name: name in plain.names)
        first = sum(name not in plain.names for name in names)
        rule = WithPlainSteps(optimiser, first, optimiser.on_schedule(plain.rate))
        if mode.train is _train_vectors:  # a vector has one rule
            mode = mode._replace(train=_train_stack)
    aim = _Aim(loss, names, fixed, mode.precision)
    params = mode.train(aim, [start[name] for name in names], batches, rule)
    trained = {**dict(zip(names, params, strict=True)), **fixed}
    return Tree({name: trained[name] for name in start})


def minimise(start: Tree, loss: Callable[[Tree], Tensor], steps: int, optimiser: Optimiser) -> Tree:
    """Full-gradient descent on a function of the parameters alone, as servers do it."""
    nothing = Batch(torch.empty(0), torch.empty(0))
    return train_at_server(start, lambda params, _: loss(params), repeat(nothing, steps), optimiser)


def train_at_server(start: Tree, loss: Loss, batches: Iterable[Batch], optimiser: Optimiser) -> Tree:
    """Train every leaf of a network that a server keeps, with one step per batch.

    Always in full precision: the suite's `precision` is about clients.
    """
    return train(start, loss, batches, optimiser)


def _choose(live: Tensor, new: Any, old: Any) -> Any:
    return tree_map(lambda a, b: torch.where(live, a, b), new, old)
