"""FedPLVM: clients send several prototypes per class, and contrast features with sharpened similarities.

Wang et al., "Taming Cross-Domain Representation Variance in Federated Prototype Learning with Heterogeneous
Data Domains", NeurIPS 2024; formulae and defaults follow the public code. Client, with prototypes p of all
classes, P_c those of class c and p̄_c their mean: CE + λ · mean_i (L_i + K_i), where L_i = −log( Σ_{p ∈
P_{y_i}} e^{s(z_i, p)/τ} / Σ_p e^{s(z_i, p)/τ} ) with s = max(cos, 0.01)^α and K_i = 2 (cos(z_i, p̄_{y_i}) −
1)². Samples whose class has no prototype add 0. In the first round there are no prototypes and no terms.

Afterwards a client clusters its z of each class under its final model by FINCH (cosine, the last partition
that is not one cluster) and sends its weights, the means of the clusters, and the clusters' sizes. Server:
weights are averaged; per class the clients' prototypes are clustered by FINCH again, and the means of these
clusters are the prototypes.

Deviations: a client has room for `local_prototypes` clusters per class, numbered by their first samples;
those beyond are merged into the last, so that all replies have the same shape, and empty places are counted
in the bytes. z is what the classifier works on, the projector's output. The public code raises all cosines to
the power α, which is not defined below 0, and weighs the terms with λ = 100 at a rate of 0.01 with a momentum
of 0.5; the default here is ours.
"""

from collections.abc import Mapping, Sequence

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg
from methods.shared.features import embedded
from methods.shared.finch import clustered_prototypes, contrast, prototypes_per_class
from methods.shared.losses import on_sphere
from methods.shared.stacked_finch import clusters_by_class

SMALLEST = 0.01
"""The least cosine: below it, the slope of cos^α grows without bound."""


class FedPLVM(FedAvg):
    label = "FedPLVM"
    neutral = {"lam": 0.0}
    stacks_server = False

    lam: float = Field(default=0.1, ge=0)
    """λ, the weight of the prototype terms; ours (100 in the public code, at smaller steps)."""
    alpha: float = Field(default=0.25, gt=0, le=1)
    """α, the power of the cosines; 0.25 as in the public code."""
    tau: float = Field(default=0.07, gt=0)
    """τ, the temperature of the contrast; 0.07 as in the public code."""
    local_prototypes: int = Field(default=5, ge=1)
    """The most prototypes per class that a client sends; ours."""

    def check(self, task: Task) -> None:
        if self.lam:
            task.require_trainable_embeddings()

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.lam) or "centres" not in message:
            return super().objective(task, client, message)
        centres, classes = message["centres"], message["classes"]
        member = classes == torch.arange(task.classes, device=task.device)[:, None]
        known = member.any(dim=1).to(centres.dtype)
        middle = member.to(centres.dtype) @ centres / member.sum(dim=1, keepdim=True).clamp(min=1)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.embed(params, batch.x)
            cosine = (on_sphere(z) * on_sphere(middle)[batch.y]).sum(dim=1)
            correction = 2 * (cosine - 1).square()
            terms = sparse_contrast(z, member[batch.y], centres, self.alpha, self.tau) + correction
            pull = batch.term("prototypes", batch.mean(terms * known[batch.y]))
            return cross_entropy(task.classify(params, z), batch) + self.lam * pull

        return loss

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        own = embedded(task, reply["model"], batches)
        return reply | prototypes_by_class(own, task.classes, self.local_prototypes), kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means = torch.cat([reply.content["prototypes"] for reply in replies], dim=1)
        held = torch.cat([reply.content["counts"] for reply in replies], dim=1) > 0
        by_class = [means[label, held[label]] for label in range(task.classes)]
        return super().aggregate(task, server, replies) | clustered_prototypes(by_class)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return prototypes_per_class(server)


def sparse_contrast(z: Tensor, own: Tensor, centres: Tensor, alpha: float, tau: float) -> Tensor:
    """Per sample −log of its own prototypes' share (`own`: samples × prototypes); 0 where it has none."""
    similarity = (on_sphere(z) @ on_sphere(centres).T).clamp(min=SMALLEST) ** alpha / tau
    return contrast(similarity, own)


def prototypes_by_class(features: Batch, classes: int, places: int) -> Message:
    """Means (classes × places × D) and sizes of the clusters of each class; size 0: the place is empty."""
    z, y, real = features.x, features.y, features.real
    clusters = clusters_by_class(z, y, real > 0)
    is_first = (clusters == torch.arange(len(y), device=y.device)) & (real > 0)
    labels = torch.arange(classes, device=y.device)
    position = (is_first[:, None] & (y[:, None] == labels)).long().cumsum(dim=0).gather(1, y[:, None])[
        :, 0
    ] - 1
    place = position[clusters].clamp(max=places - 1)
    slot = y * places + place
    members = (slot == torch.arange(classes * places, device=y.device)[:, None]).to(z.dtype) * real
    counts = members.sum(dim=1)
    means = members @ z / counts.clamp(min=1)[:, None]
    return {"prototypes": means.view(classes, places, -1), "counts": counts.view(classes, places)}
