"""FedProto's prototypes: per class the mean of the clients' class means."""

from abc import ABC
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import (
    Batch,
    Batches,
    Loss,
    Message,
    Reply,
    State,
    Task,
    Tree,
    cross_entropy,
    is_off,
    option,
)
from methods.shared.losses import class_sums, on_sphere, safe_divide
from methods.shared.prototypes import PrototypeLearning
from methods.shared.two_layers import new_layers, two_layers

LAYERS = "prototype_projector"
"""Under which the layers of the projector stand in the model."""
NEAREST = 1e-12
"""The smallest squared distance: the slope of a square root at 0 is infinite."""


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
    pull: Literal["samples", "prototypes"] = option("samples")
    """What is pulled to the global prototype: each sample's z, as in the public code, or the mean of z per
    class of the batch, as Eq. 6-8 print it for the client's prototypes (averaged over the classes)."""
    squared: bool = option(True)
    """Whether the Euclidean pull is squared, as in the public code, or its root is taken, as printed."""
    projector: int | None = option(None, ge=1)
    """Hidden width of two more layers D → hidden → D behind the encoder, whose output is then z; None: no
    such layers, as in the paper. 256 in code that has them."""
    freeze_backbone: bool = option(False)
    """Whether the encoder stays as it was at the start, so that the projector and what follows it train."""
    momentum: float = option(0.0, ge=0, lt=1)
    """How much of its old value a global prototype keeps in every round; 0 as in the paper."""
    hierarchical: bool = option(False)
    """Whether clients are first averaged within their domain and then the domains, so that each domain counts
    the same; needs clients that belong to one domain each."""

    def check(self, task: Task) -> None:
        if self.projector is None or not self.freeze_backbone:
            super().check(task)
        if self.freeze_backbone and self.projector is None:
            raise ValueError("has freeze_backbone, which leaves no features to train: set projector too")
        if self.hierarchical and not task.domains:
            raise ValueError("has hierarchical, but the clients do not belong to one domain each")

    def server(self, task: Task) -> State:
        state = super().server(task)
        return state | {"model": self.with_projector(task)} if "model" in state else state

    def client(self, task: Task) -> State:
        state = super().client(task)
        return state | {"model": self.with_projector(task)} if "model" in state else state

    def with_projector(self, task: Task) -> Tree:
        """The initial model and, if there are any, the projector's layers."""
        if self.projector is None:
            return task.initial
        wide = task.model.feature_size
        layers = new_layers(wide, self.projector, wide, task.generator("prototype projector"))
        return task.initial | layers.under(LAYERS).to(task.device)

    def plain_objective(self, task: Task) -> Loss:
        if self.projector is None:
            return super().plain_objective(task)

        def loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits_from(params, self.features(task, params, batch.x)), batch)

        return loss

    def features(self, task: Task, params: Tree, x: Tensor) -> Tensor:
        z = super().features(task, params, x)
        return z if self.projector is None else two_layers(params.below(LAYERS), z)

    def fit(self, task: Task, start: Tree, client: State, message: Message, batches: Batches) -> Tree:
        frozen = task.trained(start.part("encoder")) if self.freeze_backbone else Tree({})
        objective = self.objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            return objective(params | frozen, batch)

        return start | task.train(start.without(frozen), loss, batches, also=start.part(LAYERS))

    def attraction(self, z: Tensor, batch: Batch, prototypes: Tensor, known: Tensor) -> Tensor:
        if self.distance == "cosine":
            pulls = self.contrasts(z, batch.y, prototypes, known)
            return batch.mean(torch.where(known[batch.y] > 0, pulls, 0.0))
        if self.pull == "samples":
            return super().attraction(z, batch, prototypes, known)
        totals, counts = class_sums(z, batch, len(prototypes))
        there = (counts > 0).to(z.dtype) * known
        labels = torch.arange(len(prototypes), device=z.device)
        return (
            self.pulls(safe_divide(totals, counts), labels, prototypes) * there
        ).sum() / there.sum().clamp(min=1)

    def pulls(self, z: Tensor, y: Tensor, prototypes: Tensor) -> Tensor:
        squared = super().pulls(z, y, prototypes)
        return squared if self.squared else squared.clamp(min=NEAREST).sqrt()

    def contrasts(self, z: Tensor, y: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        """CE(nor(z)·nor(P)ᵀ/T, y) per sample; not a number where the class has no prototype."""
        similarity = self.closeness(z, prototypes, known) / self.temperature
        return -similarity.log_softmax(dim=-1).gather(-1, y[:, None])[:, 0]

    def closeness(self, z: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        if self.distance == "euclidean":
            return super().closeness(z, prototypes, known)
        near = on_sphere(z) @ on_sphere(prototypes).T
        return near.masked_fill(known == 0, float("-inf"))

    def renewed_prototypes(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return self.global_prototypes(server, replies, task.domains if self.hierarchical else ())

    def global_prototypes(
        self, server: State, replies: Sequence[Reply], domains: Sequence[int] = ()
    ) -> State:
        """The mean per class over the clients that hold it; a class that nobody holds keeps its prototype.

        With `domains` (client → domain) it is the mean over the domains of their clients' means.
        """
        prototypes = torch.stack([reply.content["prototypes"] for reply in replies])
        counts = torch.stack([reply.content["counts"] for reply in replies])
        shares = (counts > 0).to(counts.dtype) if self.prototype_weighting == "mean" else counts
        if domains:
            shares = within_domains(shares, [domains[reply.client] for reply in replies])
        held = shares.sum(dim=0)
        means = self.scaled((shares[:, :, None] * prototypes).sum(dim=0) / where_held(held)[:, None])
        known = (held > 0).to(means.dtype)
        if "prototypes" not in server:
            return {"prototypes": means, "known": known}
        old = server["prototypes"]
        if not is_off(self.momentum):
            kept = self.momentum * server["known"][:, None]
            means = self.scaled(kept * old + (1 - kept) * means)
        return {
            "prototypes": torch.where(held[:, None] > 0, means, old),
            "known": torch.maximum(server["known"], known),
        }

    def scaled(self, vectors: Tensor) -> Tensor:
        return on_sphere(vectors) if self.normalize_prototypes else vectors


def within_domains(shares: Tensor, domains: Sequence[int]) -> Tensor:
    """Clients' shares per class, scaled so that those of a domain sum to 1 where it has any."""
    of = torch.tensor(domains, device=shares.device)
    same = (of[:, None] == of).to(shares.dtype)
    return shares / where_held(same @ shares)


def where_held(total: Tensor) -> Tensor:
    """The total, or 1 where it is 0, to divide by."""
    return torch.where(total > 0, total, 1.0)
