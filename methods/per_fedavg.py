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

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import SGD, Batch, Batches, Loss, Message, Number, State, Task, Tree
from methods.fedavg import FedAvg


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
        adapting = (batch.unrecorded() for batch in batches)
        own = task.train(message["model"], loss, adapting, SGD(lr=self.alpha))
        trained = task.train(message["model"], self.with_meta_gradient(task, loss), batches)
        return {"model": trained}, {"model": own}

    def with_meta_gradient(self, task: Task, loss: Loss) -> Loss:
        """The value of the loss, with g in place of its gradient."""

        def meta_loss(params: Tree, batch: Batch) -> Tensor:
            along = self.meta_gradient(task, params, loss, batch).detach().dot(params)
            value = loss(params, batch) if batch.terms is not None else along
            return value.detach() + along - along.detach()

        return meta_loss

    def meta_gradient(self, task: Task, params: Tree, loss: Loss, batch: Batch) -> Tree:
        """g in place of a plain gradient, computed from plain ones."""
        first, second = halves(batch)

        def slope_at(step: Number, direction: Tree, part: Batch) -> Tree:
            return task.gradient(params | plus(task.trained(params), step, direction), loss, part)

        after_step = slope_at(-self.alpha, task.gradient(params, loss, first), second)
        if self.variant == "first_order":
            return after_step
        ahead, behind = (slope_at(step, after_step, first) for step in (self.delta, -self.delta))
        return plus(after_step, -self.alpha / (2 * self.delta), plus(ahead, -1.0, behind))


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """The batch with only the samples at even places, and with only those at odd places, counted."""
    odd = torch.arange(len(batch.y), device=batch.y.device) % 2 == 1
    return batch.keeping(~odd), batch.keeping(odd)


def plus(one: Tree, factor: Number, other: Tree) -> Tree:
    """one + factor · other, in one operation per leaf."""
    if isinstance(factor, Tensor):
        return one.map(lambda a, b: torch.addcmul(a, b, factor), other)
    return one.map(lambda a, b: torch.add(a, b, alpha=factor), other)
