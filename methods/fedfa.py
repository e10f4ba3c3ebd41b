"""FedFA: clients train on features moved at random, further in the channels in which clients differ.

Zhou and Konukoglu, "FedFA: Federated Feature Augmentation", ICLR 2023. The paper resamples the mean and the
standard deviation of every channel of a feature map from N(·, (γ + 1)Σ²), where Σ² is their variance over the
batch and γ is large in channels whose statistics vary much between clients. Here features are the vectors z
between encoder and classifier, or embeddings: a channel of one value has no standard deviation, and its mean
is the value itself. So with probability 0.5 a step trains on
    z + ε ⊙ √((γ + 1) Σ²_batch),  ε ~ N(0, I).
Server: with v the variance, channel by channel, of the clients' means of z, γ = D · s / Σ s for
s = v / (1 + v).

A client's mean is that of its samples under its final model (the paper: a running mean over its batches), γ
is 0 in the first round, and no gradient runs through the size of the noise. At probability 0 it is FedAvg
exactly.
"""

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, Round, State, Task, Tree
from methods.fedavg import FedAvg
from methods.shared.losses import cross_entropy


class FedFA(FedAvg):
    label: ClassVar[str] = "FedFA"

    probability: float = Field(default=0.5, ge=0, le=1)
    """Of a step with moved features."""

    def server(self, task: Task) -> State:
        gamma = torch.zeros(task.model.feature_size, device=task.device)
        return super().server(task) | {"gamma": gamma}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if self.probability == 0:
            return super().objective(task, client, message)

        def loss(y: Tree, batch: Batch) -> Tensor:
            z = task.encode(y, batch.x)
            noise = batch.normal(*z.shape, stream=1) * noise_scale(z.detach(), batch, message["gamma"])
            moved = z + (batch.uniform(1) < self.probability) * noise
            return cross_entropy(task.logits_from(y, moved), batch)

        return loss

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def down(server: State, client_id: int) -> Message:
            return base.down(server, client_id) | {"gamma": server["gamma"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, client = base.local(client, message, batches)
            with task.evaluation():
                sums = [channel_sum(task.encode(reply["model"], batch.x), batch) for batch in batches.once()]
            return reply | {"mean": torch.stack(sums).sum(dim=0) / batches.samples}, client

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            means = torch.stack([reply.content["mean"] for reply in replies])
            return base.aggregate(server, replies) | {"gamma": channel_weights(means)}

        return Round(down, local, aggregate)


def channel_sum(z: Tensor, batch: Batch) -> Tensor:
    """Channel by channel the sum over the live samples."""
    return z.sum(dim=0) if batch.mask is None else batch.mask @ z


def noise_scale(z: Tensor, batch: Batch, gamma: Tensor) -> Tensor:
    """√((γ + 1) Σ²), with the variance over the live samples."""
    count = len(z) if batch.mask is None else batch.mask.sum().clamp(min=1)
    deviation = z - channel_sum(z, batch) / count
    return ((gamma + 1) * channel_sum(deviation.square(), batch) / count).sqrt()


def channel_weights(means: Tensor) -> Tensor:
    """γ from the clients' means, one row each; all 0 where they do not differ."""
    variance = means.var(dim=0, correction=0)
    spread = variance / (1 + variance)
    return len(spread) * spread / spread.sum().clamp(min=torch.finfo(spread.dtype).tiny)
