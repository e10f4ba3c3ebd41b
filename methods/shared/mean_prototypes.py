"""FedProto's prototypes: per class the mean of the clients' class means."""

from abc import ABC
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Reply, State, Task
from methods.shared.losses import on_sphere, safe_divide
from methods.shared.prototypes import PrototypeLearning


class MeanPrototypes(PrototypeLearning, ABC):
    """What the two forms of FedProto share."""

    prototype_weighting: Literal["mean", "weighted_mean"] = "mean"
    """A global prototype is the mean over the clients that hold the class, or weighted by their counts."""
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """The pull on z_i: ‖z_i − P_y‖²/D, or CE(nor(z_i)·nor(P)ᵀ/T, y_i) over the classes with a prototype."""
    temperature: float = Field(default=0.5, gt=0)
    """T, for the cosine distance."""
    normalize_prototypes: bool = False
    """Scale the clients' and the global prototypes to length 1 and compare them with nor(z) instead of z."""

    def pull(self, z: Tensor, y: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        if self.distance == "euclidean":
            return super().pull(z, y, prototypes, known)
        similarity = self.closeness(z, prototypes, known) / self.temperature
        term = -similarity.log_softmax(dim=-1).gather(-1, y[:, None])[:, 0]
        return torch.where(known[y] > 0, term, 0.0)

    def closeness(self, z: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        if self.distance == "euclidean":
            return super().closeness(z, prototypes, known)
        near = on_sphere(z) @ on_sphere(prototypes).T
        return near.masked_fill(known == 0, float("-inf"))

    def renewed_prototypes(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return self.global_prototypes(server, replies)

    def global_prototypes(self, server: State, replies: Sequence[Reply]) -> State:
        """The mean per class over the clients that hold it; a class that nobody holds keeps its prototype."""
        prototypes = torch.stack([reply.content["prototypes"] for reply in replies])
        counts = torch.stack([reply.content["counts"] for reply in replies])
        shares = (counts > 0).to(counts.dtype) if self.prototype_weighting == "mean" else counts
        held = shares.sum(dim=0)
        means = self.scaled(safe_divide((shares[:, :, None] * prototypes).sum(dim=0), held))
        known = (held > 0).to(means.dtype)
        if "prototypes" not in server:
            return {"prototypes": means, "known": known}
        return {
            "prototypes": torch.where(held[:, None] > 0, means, server["prototypes"]),
            "known": torch.maximum(server["known"], known),
        }

    def scaled(self, vectors: Tensor) -> Tensor:
        return on_sphere(vectors) if self.normalize_prototypes else vectors
