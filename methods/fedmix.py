"""FedMix: clients mix their samples with averages of all clients' samples.

Yoon et al., "FedMix: Approximation of Mixup under Mean Augmented Federated Learning", ICLR 2021. Before round
1 every client uploads the means (x̄, ȳ) of groups of M samples; all clients get all of them and keep them.
Client, with one (x̄, ȳ) drawn at every step and u = (1 − λ)x: the mean over the batch of
    (1 − λ) ℓ(f(u), y) + λ ℓ(f(u), ȳ) + λ(1 − λ) ⟨∇_u ℓ(f(u), y), x̄⟩,
Mixup's loss with x̄ to first order in λ. Each sample's inner product counts once in that mean.

Groups are drawn at random and have exactly M samples, so that every mean covers M of them; samples that are
left over are not uploaded. Images are averaged as the floats that models see. λ = 0 is FedAvg exactly.
`naive` is the paper's NaiveMix: the inputs themselves are mixed, f((1 − λ)x + λx̄).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import (
    Batch,
    Batches,
    Loss,
    Message,
    Prelude,
    Reply,
    State,
    Task,
    Tree,
    is_off,
    label_losses,
)
from methods.fedavg import FedAvg
from methods.shared.preludes import Download, Upload
from methods.shared.slopes import with_slopes


class FedMix(FedAvg):
    label = "FedMix"
    neutral = {"lam": 0.0}

    lam: float = Field(default=0.1, ge=0, le=1)
    """λ, the share of the averaged samples; the paper uses 0.05 to 0.2."""
    group_size: Annotated[int, Field(ge=1)] | Literal["all"] = 5
    """M, how many samples are averaged; 5 is among the paper's sizes. `all`: one mean per client."""
    variant: Literal["taylor", "naive"] = "taylor"
    """The paper's FedMix (`taylor`), or its NaiveMix: the loss at the mixed inputs themselves."""

    def check(self, task: Task) -> None:
        if task.model.reads_tokens:
            raise ValueError("averages samples, which texts do not allow: give an encoder with --encoder")

    def prelude(self, task: Task) -> Prelude:
        return [MeansUp(self.group_size), MeansDown()] if self.lam > 0 else []

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        means = client.get("means")
        if is_off(self.lam) or means is None or len(means["y"]) == 0:
            return super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            at = (batch.uniform(1) * len(means["y"])).long()
            x_mean, y_mean = means["x"][at], means["y"][at]

            def losses(x: Tensor) -> tuple[Tensor, Tensor]:
                """Per sample ℓ(f(x), y) and ℓ(f(x), ȳ)."""
                log_p = task.logits(params, x).log_softmax(dim=-1)
                return label_losses(log_p, batch), -(log_p * y_mean).sum(dim=-1)

            u = (1 - self.lam) * task.floats(batch.x)
            if self.variant == "naive":
                own, averaged = losses(u + self.lam * x_mean)
                return batch.mean((1 - self.lam) * own + self.lam * averaged)
            (own, averaged), slope = with_slopes(losses, u, x_mean, batch.stacked)
            return batch.mean((1 - self.lam) * (own + self.lam * slope) + self.lam * averaged)

        return loss

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"averaged_samples": float(server["mean_count"])} if "mean_count" in server else {}


@dataclass(frozen=True)
class MeansUp(Upload):
    """Every client sends the means of its groups of samples."""

    group_size: int | Literal["all"]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = batches.all()
        x, y = task.floats(own.x), one_hot(own.y, task.classes)
        order = next(iter(batches)).uniform(len(y)).argsort()
        size = len(y) if self.group_size == "all" else self.group_size
        groups = order[: len(y) - len(y) % size].view(-1, size)
        return {"x": x[groups].mean(dim=1), "y": y[groups].mean(dim=1)}, {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means = {key: torch.cat([reply.content[key] for reply in replies]) for key in ("x", "y")}
        return server | {"means": means}


class MeansDown(Download):
    """Every client gets the means of all clients and keeps them; the server keeps their number."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {"means": server["means"]} if "means" in server else {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        kept = {key: value for key, value in server.items() if key != "means"}
        count = len(server["means"]["y"]) if "means" in server else 0
        return kept | {"mean_count": torch.tensor(count)}


def one_hot(y: Tensor, classes: int) -> Tensor:
    return (y[:, None] == torch.arange(classes, device=y.device)).float()
