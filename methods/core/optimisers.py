"""Optimisers as pure rules: (parameters, gradients, memory) → (parameters, memory).

They work on lists of tensors, by the arithmetic that is quickest for one client or a stack. In a stack on a
GPU a list has one vector of all parameters, and the same rules take as few operations as they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import torch
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, WrapValidator
from torch import Tensor

from methods.core.numbers import Number, is_off
from methods.fast.list_arithmetic import ListArithmetic, add_each

Rates: TypeAlias = Sequence[Number] | Tensor
"""Learning rates: of every tensor of a list, or of every number of a vector."""
Rate: TypeAlias = Annotated[
    float,
    Field(gt=0),
    WrapValidator(lambda rate, check: rate if isinstance(rate, Tensor) else check(rate)),
]
"""A learning rate; in a stack of cells a method may make an optimiser of one that is a tensor."""
CONFIG = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


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

    def on_schedule(self, rate: Number) -> Number:
        """A rate from outside, multiplied as the schedule has multiplied this optimiser's."""
        return self._scale * rate

    def rates(self, names: Sequence[str]) -> list[Number]:
        return [next((g.lr for g in self.groups if g.match in name), self.lr) for name in names]

    def start(self, params: list[Tensor]) -> Any:
        raise NotImplementedError

    def step(
        self,
        params: list[Tensor],
        grads: list[Tensor],
        memory: Any,
        rates: Rates,
        lists: ListArithmetic,
    ) -> Any:
        raise NotImplementedError

    def clipped(self, grads: list[Tensor], lists: ListArithmetic) -> list[Tensor]:
        if self.clip_norm is None:
            return grads
        if lists.is_vector:  # the same factor's inverse; `rsub` multiplies and adds in one operation
            longer = torch.rsub(lists.norm(grads), 1e-6 / self.clip_norm, alpha=-1 / self.clip_norm)
            return [grads[0] / longer.clamp(min=1.0)]
        factor = torch.clamp(self.clip_norm / (lists.norm(grads) + 1e-6), max=1.0)
        return [grad * factor for grad in grads]

    def move(
        self,
        params: list[Tensor],
        direction: list[Tensor],
        rates: Rates,
        lists: ListArithmetic,
        spare: bool = False,
    ) -> list[Tensor]:
        """params − rate · direction; `spare`: the direction is not needed afterwards."""
        if isinstance(rates, Tensor):
            return [torch.addcmul(params[0], direction[0], rates, value=-1)]
        if len(set(rates)) == 1:
            add = lists.add_over if spare else lists.add_into
            moved: list[Tensor] = add(params, direction, alpha=-rates[0])
            return moved
        return [add_each([p], [d], alpha=-r)[0] for p, d, r in zip(params, direction, rates, strict=True)]


class SGD(_Optimiser):
    name: Literal["sgd"] = "sgd"
    """Stochastic gradient descent."""
    momentum: float = Field(default=0.0, ge=0, lt=1)
    """How much of the last step's direction is kept."""

    def start(self, params: list[Tensor]) -> list[Tensor]:
        return [] if is_off(self.momentum) else [torch.zeros_like(p) for p in params]

    def step(
        self,
        params: list[Tensor],
        grads: list[Tensor],
        memory: Any,
        rates: Rates,
        lists: ListArithmetic,
    ) -> Any:
        grads = self.clipped(grads, lists)
        if not is_off(self.weight_decay):
            grads = lists.add(grads, params, alpha=self.weight_decay)
        if memory and lists.is_vector:
            grads = memory = lists.add(grads, memory, alpha=self.momentum)
        elif memory:
            memory = lists.add_into(lists.scale_into(memory, self.momentum), grads, alpha=1.0)
            grads = memory
        return self.move(params, grads, rates, lists, spare=not memory), memory


class _Adam(_Optimiser):
    decoupled: ClassVar[bool]
    """Whether weight decay acts on the parameters themselves and not on the gradient."""
    betas: tuple[float, float] = (0.9, 0.999)
    """β₁ and β₂, how slowly the moments follow the gradient and its square."""
    epsilon: float = Field(default=1e-8, gt=0)
    """ε, added to the denominator."""

    def start(self, params: list[Tensor]) -> dict[str, Any]:
        return {
            "step": torch.zeros((), dtype=torch.float64),
            "mean": [torch.zeros_like(p) for p in params],
            "square": [torch.zeros_like(p) for p in params],
        }

    def step(
        self,
        params: list[Tensor],
        grads: list[Tensor],
        memory: Any,
        rates: Rates,
        lists: ListArithmetic,
    ) -> Any:
        beta1, beta2 = self.betas
        grads = self.clipped(grads, lists)
        if self.decoupled and not is_off(self.weight_decay):
            params = self.shrunk(params, rates, lists)
        elif not is_off(self.weight_decay):
            grads = lists.add(grads, params, alpha=self.weight_decay)
        if lists.is_vector:
            return self._step_of_vector(params[0], grads[0], memory, rates)
        step = memory["step"] + 1
        mean = lists.add_into(lists.scale_into(memory["mean"], beta1), grads, alpha=1 - beta1)
        square = lists.scale_into(memory["square"], beta2)
        square = lists.add_into(square, [grad * grad for grad in grads], alpha=1 - beta2)
        first = 1 / (1 - beta1**step)
        second = 1 / (1 - beta2**step).sqrt()
        direction = [
            (m * first.to(m.dtype)) / ((v.sqrt() * second.to(v.dtype)) + self.epsilon)
            for m, v in zip(mean, square, strict=True)
        ]
        return self.move(params, direction, rates, lists, spare=True), {
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

    def shrunk(self, params: list[Tensor], rates: Rates, lists: ListArithmetic) -> list[Tensor]:
        """params · (1 − rate · weight decay)."""
        if isinstance(rates, Tensor):
            return [params[0] * (1 - rates * self.weight_decay)]
        if len(set(rates)) == 1:
            shrunk: list[Tensor] = lists.scale_into(params, 1 - rates[0] * self.weight_decay)
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


class WithPlainSteps(NamedTuple):
    """An optimiser for the first parameters of a list, and plain gradient descent for all after them."""

    optimiser: Optimiser
    first: int
    """How many parameters are the optimiser's; its clipping and weight decay concern these only."""
    rate: Number
    """The learning rate of the others."""

    def rates(self, names: Sequence[str]) -> list[Number]:
        return self.optimiser.rates(names[: self.first])

    def start(self, params: list[Tensor]) -> Any:
        return self.optimiser.start(params[: self.first])

    def step(
        self, params: list[Tensor], grads: list[Tensor], memory: Any, rates: Rates, lists: ListArithmetic
    ) -> Any:
        n = self.first
        plain = [p - self.rate * g for p, g in zip(params[n:], grads[n:], strict=True)]
        moved, memory = self.optimiser.step(params[:n], grads[:n], memory, rates, lists)
        return [*moved, *plain], memory
