"""Per-FedAvg: FedAvg that looks for a model from which one gradient step suits a client.

Fallah et al., "Personalized Federated Learning with Theoretical Guarantees: A Model-Agnostic Meta-Learning
Approach", NeurIPS 2020. A step's batch is divided: the samples at even places are D, those at odd places D′.
    w̃ = w − α ∇f(w; D),
    first order:  g = ∇f(w̃; D′),
    Hessian-free: g = ∇f(w̃; D′) − α · [∇f(w + δu; D) − ∇f(w − δu; D)] / (2δ),  u = ∇f(w̃; D′),
and the client's optimiser steps along g. Both are approximations of the gradient of f(w − α∇f(w; D); D′),
which is (I − α∇²f(w; D)) u. The client's model travels and is averaged as in FedAvg. A client's own model is
the one it was sent in its last round after plain SGD steps of rate α on that round's batches, and stays with
it.

Defaults: Hessian-free, α = 0.01 and δ = 0.001, the authors' α and a δ that float32 can resolve; β is the rate
of the suite's optimiser. Deviations: the paper draws three batches per step, with one of its own for the
Hessian, and adapts with one step; here a client adapts with as many steps as it trains.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree
from methods.core.numbers import Number
from methods.core.optimisers import SGD, Tensors
from methods.core.training import Mode
from methods.fedavg import FedAvg

Gradient: TypeAlias = Callable[[Loss, list[str], Tensors, dict[str, Tensor], Batch], Tensors]


class PerFedAvg(FedAvg):
    label = "Per-FedAvg"
    neutral = "takes half of every batch for its inner step at every setting"

    alpha: float = Field(default=0.01, gt=0)
    """α, the rate of the inner step and of a client's adaptation; 0.01 as in the paper's experiments."""
    variant: Literal["first_order", "hessian_free"] = "hessian_free"
    """Leave out the second derivatives, or take a difference of gradients for them."""
    delta: float = Field(default=1e-3, gt=0)
    """δ of the difference of gradients."""

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        loss = self.objective(task, client, message)
        own = task.train(message["model"], loss, _unrecorded(batches), SGD(lr=self.alpha))
        y = task.train(message["model"], self.with_meta_gradient(task, loss), batches)
        return {"model": y}, {"model": own}

    def with_meta_gradient(self, task: Task, loss: Loss) -> Loss:
        """The value of the loss, with g in place of its gradient."""
        gradient = self.meta_gradient(task.mode)

        def meta_loss(w: Tree, batch: Batch) -> Tensor:
            names = [name for name in w if name in task.trainable]
            leaves, fixed = [w[name] for name in names], w.without(names).as_dict()
            g = gradient(loss, names, leaves, fixed, batch._replace(terms=None))
            along = torch.stack([(a.detach() * b).sum() for a, b in zip(g, leaves, strict=True)]).sum()
            value = loss(w, batch) if batch.terms is not None else along
            return value.detach() + along - along.detach()

        return meta_loss

    def meta_gradient(self, mode: Mode) -> Gradient:
        """g in place of a plain gradient, computed from plain ones."""

        def gradient(
            loss: Loss, names: list[str], w: Tensors, fixed: dict[str, Tensor], batch: Batch
        ) -> Tensors:
            def slope(at: Tensors, part: Batch) -> Tensors:
                return mode.gradient(loss, names, at, fixed, part)

            first, second = halves(batch)
            u = slope(_plus(w, -self.alpha, slope(w, first)), second)
            if self.variant == "first_order":
                return u
            ahead, behind = (slope(_plus(w, step, u), first) for step in (self.delta, -self.delta))
            curvature = _plus(ahead, -1.0, behind)
            return _plus(u, -self.alpha / (2 * self.delta), curvature)

        return gradient


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """The batch with only the samples at even places, and with only those at odd places, counted."""
    odd = torch.arange(len(batch.y), device=batch.y.device) % 2
    first, second = 1.0 - odd, odd.float()
    if batch.mask is not None:
        first, second = first * batch.mask, second * batch.mask
    return batch.with_mask(first), batch.with_mask(second)


def _plus(one: Tensors, factor: Number, other: Tensors) -> Tensors:
    if isinstance(factor, Tensor):
        return [torch.addcmul(a, b, factor) for a, b in zip(one, other, strict=True)]
    return [torch.add(a, b, alpha=factor) for a, b in zip(one, other, strict=True)]


def _unrecorded(batches: Batches) -> list[Batch]:
    """The round's batches without the recording of losses, which is the other training's."""
    return [batch._replace(terms=None) for batch in batches]
