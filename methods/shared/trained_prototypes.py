"""FedTGP's prototypes: made by a small network that the server trains on the clients' class means."""

from abc import ABC
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from methods.base import SGD, Batch, Reply, State, Task, Tree, train_at_server
from methods.shared.prototypes import PrototypeLearning
from methods.shared.two_layers import new_layers, two_layers

NEAREST = 1e-12
"""The smallest squared distance: the slope of a square root at 0 is infinite."""


class TrainedPrototypes(PrototypeLearning, ABC):
    """What the two forms of FedTGP share."""

    stacks_server = False
    margin: float = Field(default=100.0, ge=0)
    """The largest δ; 100 as in the paper."""
    server_epochs: int = Field(default=100, ge=0)
    """Passes over the uploaded class means per round; 100 as in the paper."""
    server_batch: int = Field(default=10, ge=1)
    """Class means per step of these passes; 10, the batch size of the public code."""
    server_lr: float = Field(default=0.01, gt=0)
    """The learning rate of these steps (SGD); 0.01 as in the paper."""

    def server(self, task: Task) -> State:
        draw, wide = task.generator("prototypes"), task.model.feature_size
        semantics = Tree({"R": torch.randn(task.classes, wide, generator=draw)})
        maker = (semantics | new_layers(wide, wide, wide, draw)).to(task.device)
        return super().server(task) | {"maker": maker, "rounds": torch.tensor(0)}

    def renewed_prototypes(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        held = torch.stack([reply.content["counts"] for reply in replies]) > 0
        means = torch.stack([reply.content["prototypes"] for reply in replies])
        p, y = means[held], held.nonzero()[:, 1]
        delta = min(largest_gap(p, y, task.classes), self.margin)

        def loss(maker: Tree, batch: Batch) -> Tensor:
            return margin_loss(prototypes_of(maker), batch.x, batch.y, delta)

        draws = self.draws(task, int(server["rounds"]), p, y)
        maker = train_at_server(server["maker"], loss, draws, SGD(lr=self.server_lr))
        known = held.any(dim=0).to(p.dtype)
        return {
            "maker": maker,
            "rounds": server["rounds"] + 1,
            "prototypes": prototypes_of(maker),
            "known": torch.maximum(server["known"], known) if "known" in server else known,
        }

    def draws(self, task: Task, number: int, p: Tensor, y: Tensor) -> Iterator[Batch]:
        """The uploaded class means in the steps of a round, in another order in every pass."""
        draw = task.generator("prototype steps", number)
        passes = [torch.randperm(len(y), generator=draw) for _ in range(self.server_epochs)]
        for order in torch.stack(passes).to(y.device):
            for at in order.split(self.server_batch):
                yield Batch(p[at], y[at])


def prototypes_of(maker: Tree) -> Tensor:
    """P = Θ(R)."""
    return two_layers(maker, maker["R"])


def margin_loss(prototypes: Tensor, p: Tensor, y: Tensor, delta: float) -> Tensor:
    """CE(−(‖p − P_c‖ + δ·[c = y]), y): how far class means are from their prototype and near to others."""
    distances = (p[:, None] - prototypes).square().sum(dim=-1).clamp(min=NEAREST).sqrt()
    return F.cross_entropy(-(distances + delta * F.one_hot(y, len(prototypes))), y)


def largest_gap(p: Tensor, y: Tensor, classes: int) -> float:
    """Of the distances from each class's mean to the nearest other, the largest; ∞ for a single class."""
    present = [p[y == label].mean(dim=0) for label in range(classes) if bool((y == label).any())]
    centres = torch.stack(present)
    apart = (centres[:, None] - centres).square().sum(dim=-1).sqrt().fill_diagonal_(float("inf"))
    return float(apart.min(dim=1).values.max())
