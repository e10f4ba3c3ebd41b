"""FedRDN: clients standardise every training image with the statistics of a client drawn at random.

Yan et al., "A Simple Data Augmentation for Feature Distribution Skewed Federated Learning", CVPR 2025,
around any method on images. Before round 1, up: per channel μ_k, the mean over the client's images of the
image's mean, and σ_k, the mean of the image's standard deviation (1/(p − 1) over its p pixels). Down: those
of all clients. In training, every image of every step is (x − μ_j) / σ_j with j uniform over the clients;
what a method computes on all its samples outside of training, and a client's own predictions, use the
client's own μ_k and σ_k.

Deviations: the global model is tested without knowing whose data it sees, so it standardises with the means
of μ_k and σ_k over the clients, where the paper takes those of the domain's client. The public code draws j
once per batch, and μ and σ from different clients; the paper draws per image. x are floats as the model's
first layer makes them of bytes; a linear map of the channels changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from methods.base import Batch, Batches, Message, Prelude, Reply, State, Task
from methods.shared.preludes import Download, Upload
from methods.wrappers.base import Wrapper

STREAM = 1009
"""Of the random numbers that choose statistics, apart from those that the inner method may use."""
SMALLEST = 1e-6
"""What a standard deviation is at least, for channels that are constant."""


class FedRDN(Wrapper):
    short_label = "FedRDN"
    neutral = "standardises images with shared statistics at every setting"

    def check(self, task: Task) -> None:
        super().check(task)
        if task.input_shape is None or len(task.input_shape) != 3:
            raise ValueError("standardises the channels of images, so it needs images")

    def client(self, task: Task) -> State:
        zeros = torch.zeros(channels_of(task), device=task.device)
        return super().client(task) | {"own": {"mean": zeros, "std": zeros + 1}}

    def prelude(self, task: Task) -> Prelude:
        return [StatisticsUp(), StatisticsDown(), *super().prelude(task)]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        if "means" not in client:
            return super().local(task, client, message, batches)
        return super().local(task, client, message, Standardised(task, client, batches))

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        x = task.floats(x)
        if client is not None:
            x = standardised(x, client["own"]["mean"], client["own"]["std"])
        elif "mean" in server:
            x = standardised(x, server["mean"], server["std"])
        return super().predict(task, server, client, x)


@dataclass(frozen=True)
class Standardised:
    """A client's batches with standardised images."""

    task: Task
    client: State
    batches: Batches

    @property
    def steps(self) -> int | Tensor:
        return self.batches.steps

    @property
    def samples(self) -> int | Tensor:
        return self.batches.samples

    def __iter__(self) -> Iterator[Batch]:
        means, stds = self.client["means"], self.client["stds"]
        for batch in self.batches:
            chosen = (batch.uniform(len(batch.y), stream=STREAM) * len(means)).long()
            yield batch.with_inputs(standardised(self.task.floats(batch.x), means[chosen], stds[chosen]))

    def once(self) -> Iterator[Batch]:
        own = self.client["own"]
        for batch in self.batches.once():
            yield batch.with_inputs(standardised(self.task.floats(batch.x), own["mean"], own["std"]))

    def all(self) -> Batch:
        return Batch.joined(self.once())


class StatisticsUp(Upload):
    """Clients send and keep their own statistics; the server collects them."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        pixels = [task.floats(batch.x).flatten(start_dim=2) for batch in batches.once()]
        mean = torch.cat([each.mean(dim=2) for each in pixels]).mean(dim=0)
        std = torch.cat([each.std(dim=2) for each in pixels]).mean(dim=0).clamp(min=SMALLEST)
        own = {"mean": mean, "std": std}
        return dict(own), {"own": own}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means, stds = (torch.stack([reply.content[key] for reply in replies]) for key in ("mean", "std"))
        return server | {"means": means, "stds": stds}


class StatisticsDown(Download):
    """Every client gets the statistics of all; the server keeps their means."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {key: server[key] for key in ("means", "stds") if key in server}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        if "means" not in server:
            return server
        kept = {key: value for key, value in server.items() if key not in ("means", "stds")}
        return kept | {"mean": server["means"].mean(dim=0), "std": server["stds"].mean(dim=0)}


def standardised(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(x − μ) / σ by channel; μ and σ of one client for all images, or of one per image."""
    return (x - mean[..., None, None]) / std[..., None, None]


def channels_of(task: Task) -> int:
    """The number of channels of an image."""
    return task.input_shape[0] if task.input_shape else 1
