"""FedFA: clients train on features moved at random, further in the channels in which clients differ.

Zhou and Konukoglu, "FedFA: Federated Feature Augmentation", ICLR 2023. The paper resamples the mean and the
standard deviation of every channel of a feature map from N(·, (γ + 1)Σ²), where Σ² is their variance over the
batch and γ is large in channels whose statistics vary a lot between clients. Here features are the vectors z
between encoder and classifier, or embeddings: a channel of one value has no standard deviation, and its mean
is the value itself. So with probability 0.5 a step trains on
    z + ε ⊙ √((γ + 1) Σ²_batch),  ε ~ N(0, I).
Server: with v the variance per channel of the clients' means of z, γ = D · s / Σ s for
s = v / (1 + v).

A client's mean is that of its samples under its final model (the paper: a running mean over its batches), γ
is 0 in the first round, and no gradient runs through the size of the noise. At probability 0 it is FedAvg
exactly.
"""

from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg


class FedFA(FedAvg):
    label = "FedFA"
    neutral = {"probability": 0.0}

    probability: float = Field(default=0.5, ge=0, le=1)
    """p, how likely a step trains on moved features; 0.5 as in the paper."""

    def server(self, task: Task) -> State:
        return super().server(task) | {"gamma": torch.zeros(task.model.feature_size, device=task.device)}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.probability):
            return super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.encode(params, batch.x)
            noise = batch.normal(*z.shape, stream=1) * noise_scale(z.detach(), batch, message["gamma"])
            moved = z + (batch.uniform(1) < self.probability) * noise
            return cross_entropy(task.logits_from(params, moved), batch)

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        with task.evaluation():
            sums = [channel_sum(task.encode(reply["model"], batch.x), batch) for batch in batches.once()]
        return reply | {"mean": torch.stack(sums).sum(dim=0) / batches.samples}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means = torch.stack([reply.content["mean"] for reply in replies])
        return super().aggregate(task, server, replies) | {"gamma": channel_weights(means)}


def channel_sum(z: Tensor, batch: Batch) -> Tensor:
    """Per channel, the sum over the real samples."""
    return z.sum(dim=0) if batch.mask is None else (batch.mask[:, None] * z).sum(dim=0)


def noise_scale(z: Tensor, batch: Batch, gamma: Tensor) -> Tensor:
    """√((γ + 1) Σ²), with the variance over the real samples."""
    count = batch.count.clamp(min=1)
    deviation = z - channel_sum(z, batch) / count
    return ((gamma + 1) * channel_sum(deviation.square(), batch) / count).sqrt()


def channel_weights(means: Tensor) -> Tensor:
    """γ from the clients' means, one row each; all 0 where they do not differ."""
    variance = means.var(dim=0, correction=0)
    spread = variance / (1 + variance)
    return len(spread) * spread / spread.sum().clamp(min=torch.finfo(spread.dtype).tiny)
