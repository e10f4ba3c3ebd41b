"""The parts of GGEUR's public code that are not the method of its paper, for comparing with printed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from methods.base import Batches, Loss, Message, Reply, State, Task, Tree
from methods.core.losses import cross_entropy
from methods.core.optimisers import Adam
from methods.fedavg import FedAvg
from methods.shared.preludes import Upload

OPTIMISER = Adam(lr=1e-3)
HELD_SHARE = 0.8
"""A class's covariance is that of its largest holders which have this share of its samples together."""
JITTER = 1e-6
"""Added to the diagonal of every covariance."""


class NeverSentBack(FedAvg):
    """Clients continue from their own models, and their loss takes a softmax of a softmax."""

    weighting: Literal["uniform"] = "uniform"
    """A client's weight in averages: the same for all."""

    def check(self, task: Task) -> None:
        if not all(_is_of_linear_layer(name, task.initial) for name in task.trainable):
            raise ValueError("has as_published, which draws every client's own linear layers: use model head")

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        return lambda y, batch: cross_entropy(task.logits(y, batch.x).softmax(dim=-1), batch)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, client, batches)
        return reply, reply

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return super().predict(task, server, None, x)


class OwnHeads(Upload):
    """Before round 1 every client draws weights of its own, as PyTorch draws those of linear layers."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        first = next(iter(batches))
        drawn = {}
        for stream, (name, leaf) in enumerate(task.initial.items()):
            inputs = task.initial[f"{name.rpartition('.')[0]}.weight"].shape[1]
            drawn[name] = (2 * first.uniform(*leaf.shape, stream=stream) - 1) / float(inputs**0.5)
        return {}, {"inner": {"model": Tree(drawn)}}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server


@dataclass(frozen=True)
class CountsUp(Upload):
    """Clients send how many samples of each class they have; the server chooses whose statistics it takes."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {"counts": sum(batch.y.bincount(minlength=task.classes) for batch in batches.once())}, {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        counts = torch.zeros(task.clients, task.classes, dtype=torch.int64, device=task.device)
        for reply in replies:
            counts[reply.client] = reply.content["counts"]
        return server | {"wanted": largest_holders(counts)}


def largest_holders(counts: Tensor) -> Tensor:
    """Clients × classes: whether the client is among the largest that together hold 80 % of the class."""
    order = counts.argsort(dim=0, descending=True, stable=True)
    ranked = counts.gather(0, order)
    before = ranked.cumsum(dim=0) - ranked
    wanted = (before < HELD_SHARE * counts.sum(dim=0)) & (ranked > 0)
    return torch.zeros_like(wanted).scatter(0, order, wanted)


def _is_of_linear_layer(name: str, params: Tree) -> bool:
    layer, _, part = name.rpartition(".")
    weight = params.get(f"{layer}.weight")
    return part in ("weight", "bias") and weight is not None and weight.dim() == 2
