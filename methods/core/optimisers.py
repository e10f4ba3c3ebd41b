"""Optimisers as pure rules: (parameters, gradients, memory) → (parameters, memory).

They work on lists of tensors through a `Kit`: in place on whole lists where the tensors are one client's
own, one by one in a stack on a CPU, in place from the second step on. In a stack on a GPU the list has one
vector of all parameters, and the same rules take as few operations as they can, since each costs a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import torch
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, WrapValidator
from torch import Tensor

from methods.core.numbers import Number, always
from methods.core.stacking import levels_of, outside, stack_of, stretched
from methods.fast import tensor_lists

Tensors: TypeAlias = list[Tensor]
Rates: TypeAlias = Sequence[Number] | Tensor
"""Learning rates: of every tensor of a list, or of every number of a vector."""
Rate: TypeAlias = Annotated[
    float,
    Field(gt=0),
    WrapValidator(lambda rate, check: rate if isinstance(rate, Tensor) else check(rate)),
]
"""A learning rate; in a stack of cells a method may make an optimiser of one that is a tensor."""
CONFIG = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Kit(NamedTuple):
    """List arithmetic; `into` may overwrite its first argument, which belongs to the optimiser."""

    add: Callable[..., Any]
    add_into: Callable[..., Any]
    add_over: Callable[..., Any]
    """The same, and it may overwrite the second argument instead."""
    scale_into: Callable[..., Any]
    norm: Callable[[Tensors], Tensor]
    """The length of all tensors of a list together."""
    is_vector: bool = False
    """Whether the lists have one vector each."""


def _add_into_lists(target: Tensors, other: Tensors, alpha: float) -> Tensors:
    tensor_lists.add_(target, other, alpha=alpha)
    return target


def _scale_into_lists(target: Tensors, factor: float) -> Tensors:
    tensor_lists.mul_(target, factor)
    return target


def _add_each(target: Tensors, other: Tensors, alpha: Number) -> Tensors:
    if isinstance(alpha, Tensor):
        return [torch.addcmul(a, b, alpha) for a, b in zip(target, other, strict=True)]
    return [torch.add(a, b, alpha=alpha) for a, b in zip(target, other, strict=True)]


def _add_into_each(target: Tensors, other: Tensors, alpha: Number) -> Tensors:
    """On the whole stack, as `vmap` has no such operation with a factor per client or cell."""
    kinds = [(levels_of(a), a.dim()) for a in target]
    with outside():
        for a, b, kind in zip(target, other, kinds, strict=True):
            if isinstance(alpha, Tensor):
                stack_of(a).addcmul_(stretched(b, *kind), stretched(alpha, *kind))
            else:
                stack_of(a).add_(stretched(b, *kind), alpha=alpha)
    return target


def _add_over_each(target: Tensors, other: Tensors, alpha: Number) -> Tensors:
    """Into the memory of `other` where it is a stack's own, which is still in the processor's cache.

    Only in a stack of cells, whose tensors are large.
    """
    kinds = [(levels_of(b), b.dim()) for b in other]
    if any(len(levels) < 2 for levels, _ in kinds):
        return _add_each(target, other, alpha)
    needed = {*(levels_of(alpha) if isinstance(alpha, Tensor) else ()), *chain(*map(levels_of, target))}
    with outside():
        stacks = [stack_of(b) for b in other]
        separate = len({stack.data_ptr() for stack in stacks}) == len(stacks)
        if separate and all(
            needed <= set(levels) and stack.is_contiguous()
            for (levels, _), stack in zip(kinds, stacks, strict=True)
        ):
            for a, stack, kind in zip(target, stacks, kinds, strict=True):
                if isinstance(alpha, Tensor):
                    torch.addcmul(stretched(a, *kind), stack, stretched(alpha, *kind), out=stack)
                else:
                    torch.add(stretched(a, *kind), stack, alpha=alpha, out=stack)
            return other
    return _add_each(target, other, alpha)


def _norm_of_lists(tensors: Tensors) -> Tensor:
    return torch.stack([each.square().sum() for each in tensors]).sum().sqrt()


IN_PLACE = Kit(
    add=lambda a, b, alpha: tensor_lists.add(a, b, alpha=alpha),
    add_into=_add_into_lists,
    add_over=_add_into_lists,
    scale_into=_scale_into_lists,
    norm=_norm_of_lists,
)
ONE_BY_ONE = Kit(
    add=_add_each,
    add_into=_add_each,
    add_over=_add_over_each,
    scale_into=lambda a, factor: [leaf * factor for leaf in a],
    norm=_norm_of_lists,
)
ONE_BY_ONE_IN_PLACE = ONE_BY_ONE._replace(
    add_into=_add_into_each,
    add_over=_add_into_each,
    scale_into=lambda a, factor: [leaf.mul_(factor) for leaf in a],
)
"""For tensors of a stack that nothing else refers to, each with a value per client and cell."""
VECTOR = Kit(
    add=_add_each,
    add_into=_add_each,
    add_over=_add_each,
    scale_into=lambda a, factor: [leaf * factor for leaf in a],
    norm=lambda vectors: torch.linalg.vector_norm(vectors[0]),
    is_vector=True,
)


class Group(BaseModel):
    """Other values for the parameters whose name contains `match`."""

    model_config = CONFIG
    match: str = Field(min_length=1)
    """A part of the names of these parameters."""
    lr: Rate
    """Their learning rate."""

    def scaled(self, factor: float) -> Group:
        """The same with the rate multiplied by a factor."""
        return self.model_copy(update={"lr": factor * self.lr})


class _Optimiser(BaseModel):
    model_config = CONFIG
    lr: Rate
    """η, the learning rate."""
    weight_decay: float = Field(default=0.0, ge=0)
    """The factor of the parameters that is added to the gradient."""
    clip_norm: float | None = Field(default=None, gt=0)
    """The largest norm of the whole gradient; None: no clipping."""
    groups: tuple[Group, ...] = ()
    """The first group that matches a parameter's name sets its learning rate."""
    _scale: float = PrivateAttr(default=1.0)
    """What the schedule has multiplied the rates by."""

    def scaled(self, factor: float) -> Self:
        """The same with all learning rates multiplied by a factor, as a schedule does it for a round."""
        groups = tuple(group.scaled(factor) for group in self.groups)
        changed = self.model_copy(update={"lr": factor * self.lr, "groups": groups})
        changed._scale = factor * self._scale
        return changed

    def with_groups(self, *groups: Group) -> Self:
        """The same with further groups before its own; the schedule applies to their rates too."""
        scaled = tuple(group.scaled(self._scale) for group in groups)
        return self.model_copy(update={"groups": (*scaled, *self.groups)})

    def rates(self, names: Sequence[str]) -> list[Number]:
        return [next((g.lr for g in self.groups if g.match in name), self.lr) for name in names]

    def start(self, params: Tensors) -> Any:
        raise NotImplementedError

    def step(self, params: Tensors, grads: Tensors, memory: Any, rates: Rates, kit: Kit) -> Any:
        raise NotImplementedError

    def clipped(self, grads: Tensors, kit: Kit) -> Tensors:
        if self.clip_norm is None:
            return grads
        if kit.is_vector:  # the same factor's inverse; `rsub` multiplies and adds in one operation
            longer = torch.rsub(kit.norm(grads), 1e-6 / self.clip_norm, alpha=-1 / self.clip_norm)
            return [grads[0] / longer.clamp(min=1.0)]
        factor = torch.clamp(self.clip_norm / (kit.norm(grads) + 1e-6), max=1.0)
        return [grad * factor for grad in grads]

    def move(
        self, params: Tensors, direction: Tensors, rates: Rates, kit: Kit, spare: bool = False
    ) -> Tensors:
        """params − rate · direction; `spare`: the direction is not needed afterwards."""
        if isinstance(rates, Tensor):
            return [torch.addcmul(params[0], direction[0], rates, value=-1)]
        if len(set(rates)) == 1:
            add = kit.add_over if spare else kit.add_into
            moved: Tensors = add(params, direction, alpha=-rates[0])
            return moved
        return [_add_each([p], [d], alpha=-r)[0] for p, d, r in zip(params, direction, rates, strict=True)]


class SGD(_Optimiser):
    name: Literal["sgd"] = "sgd"
    """Stochastic gradient descent."""
    momentum: float = Field(default=0.0, ge=0, lt=1)
    """How much of the last step's direction is kept."""

    def start(self, params: Tensors) -> Tensors:
        return [] if always(self.momentum, 0) else [torch.zeros_like(p) for p in params]

    def step(self, params: Tensors, grads: Tensors, memory: Any, rates: Rates, kit: Kit) -> Any:
        grads = self.clipped(grads, kit)
        if not always(self.weight_decay, 0):
            grads = kit.add(grads, params, alpha=self.weight_decay)
        if memory and kit.is_vector:
            grads = memory = kit.add(grads, memory, alpha=self.momentum)
        elif memory:
            memory = kit.add_into(kit.scale_into(memory, self.momentum), grads, alpha=1.0)
            grads = memory
        return self.move(params, grads, rates, kit, spare=not memory), memory


class _Adam(_Optimiser):
    decoupled: ClassVar[bool]
    """Whether weight decay acts on the parameters themselves and not on the gradient."""
    betas: tuple[float, float] = (0.9, 0.999)
    """β₁ and β₂, how slowly the moments follow the gradient and its square."""
    epsilon: float = Field(default=1e-8, gt=0)
    """ε, added to the denominator."""

    def start(self, params: Tensors) -> dict[str, Any]:
        return {
            "step": torch.zeros((), dtype=torch.float64),
            "mean": [torch.zeros_like(p) for p in params],
            "square": [torch.zeros_like(p) for p in params],
        }

    def step(self, params: Tensors, grads: Tensors, memory: Any, rates: Rates, kit: Kit) -> Any:
        beta1, beta2 = self.betas
        grads = self.clipped(grads, kit)
        if self.decoupled and not always(self.weight_decay, 0):
            params = self.shrunk(params, rates, kit)
        elif not always(self.weight_decay, 0):
            grads = kit.add(grads, params, alpha=self.weight_decay)
        if kit.is_vector:
            return self._step_of_vector(params[0], grads[0], memory, rates)
        step = memory["step"] + 1
        mean = kit.add_into(kit.scale_into(memory["mean"], beta1), grads, alpha=1 - beta1)
        square = kit.scale_into(memory["square"], beta2)
        square = kit.add_into(square, [grad * grad for grad in grads], alpha=1 - beta2)
        first = 1 / (1 - beta1**step)
        second = 1 / (1 - beta2**step).sqrt()
        direction = [
            (m * first.to(m.dtype)) / ((v.sqrt() * second.to(v.dtype)) + self.epsilon)
            for m, v in zip(mean, square, strict=True)
        ]
        return self.move(params, direction, rates, kit, spare=True), {
            "step": step,
            "mean": mean,
            "square": square,
        }

    def _step_of_vector(self, params: Tensor, grads: Tensor, memory: Any, rates: Rates) -> Any:
        """The same in fewer operations."""
        step = memory["step"] + 1
        mean = torch.lerp(memory["mean"][0], grads, 1 - self.betas[0])
        square = torch.addcmul(memory["square"][0] * self.betas[1], grads, grads, value=1 - self.betas[1])
        first, second = ((1 - beta**step).to(params.dtype) for beta in self.betas)
        direction, size = mean / first, (square / second).sqrt() + self.epsilon
        rate = rates if isinstance(rates, Tensor) else rates[0]
        if isinstance(rate, Tensor):
            moved = torch.addcmul(params, direction / size, rate, value=-1)
        else:
            moved = torch.addcdiv(params, direction, size, value=-rate)
        return [moved], {"step": step, "mean": [mean], "square": [square]}

    def shrunk(self, params: Tensors, rates: Rates, kit: Kit) -> Tensors:
        """params · (1 − rate · weight decay)."""
        if isinstance(rates, Tensor):
            return [params[0] * (1 - rates * self.weight_decay)]
        if len(set(rates)) == 1:
            shrunk: Tensors = kit.scale_into(params, 1 - rates[0] * self.weight_decay)
            return shrunk
        return [p * (1 - r * self.weight_decay) for p, r in zip(params, rates, strict=True)]


class Adam(_Adam):
    decoupled = False
    name: Literal["adam"] = "adam"
    """Adam with bias correction; weight decay is part of the gradient."""


class AdamW(_Adam):
    decoupled = True
    name: Literal["adamw"] = "adamw"
    """Adam with decoupled weight decay: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR
    2019, as in `torch.optim.AdamW`: every step first shrinks the parameters by rate · weight decay."""
    weight_decay: float = Field(default=0.01, ge=0)
    """By what share of the learning rate the parameters shrink in a step; 0.01 as in PyTorch."""


Optimiser: TypeAlias = Annotated[SGD | Adam | AdamW, Field(discriminator="name")]
