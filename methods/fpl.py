"""FPL: clients contrast features with several prototypes per class, and pull them to their mean.

Huang et al., "Rethinking Federated Learning with Domain Shift: A Prototype View", CVPR 2023. Client:
    CE + mean_i [ −log( Σ_{p ∈ P_{y_i}} e^{cos(z_i, p)/τ} / Σ_p e^{cos(z_i, p)/τ} ) + ‖z_i − p̄_{y_i}‖² / D ],
where P_c are the prototypes of class c, p̄_c is their mean and D is the width of z; samples whose class has no
prototype add 0 to the mean over the batch. In the first round there is no prototype, so no term. Afterwards a
client sends its weights and its class means of z. Server: weights are averaged; per class the means of the
round's clients are clustered by FINCH (cosine distance, last partition), and the prototypes are the clusters'
means.

Deviations: the class means are those of z under the client's final model, where the public code collects z
while the model trains in the last local epoch. The public code fails on a batch none of whose classes has a
prototype; here such a batch has no term.
"""

from collections.abc import Mapping, Sequence

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.shared.finch import cluster_means, finch
from methods.shared.losses import on_sphere
from methods.shared.prototypes import class_means


class FPL(FedAvg):
    label = "FPL"
    neutral = "contrasts features with prototypes at every setting"

    tau: float = Field(default=0.02, gt=0)
    """τ, the temperature of the contrast; 0.02 as in the paper."""

    def check(self, task: Task) -> None:
        if not task.has_trainable_features:
            raise ValueError(
                "has no effect on a frozen encoder: choose a model with trainable features, such as "
                "{name: head, layers: 2, hidden: 256}"
            )

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if "centres" not in message:
            return super().objective(task, client, message)
        centres, classes = message["centres"], message["classes"]
        member = classes == torch.arange(task.classes, device=task.device)[:, None]
        known = member.any(dim=1).to(centres.dtype)
        middle = member.to(centres.dtype) @ centres / member.sum(dim=1, keepdim=True).clamp(min=1)

        def loss(y: Tree, batch: Batch) -> Tensor:
            z = task.encode(y, batch.x)
            pull = (z - middle[batch.y]).square().mean(dim=1) * known[batch.y]
            terms = contrast(z, member[batch.y], centres, self.tau) + pull
            return cross_entropy(task.logits_from(y, z), batch) + batch.mean(terms)

        return loss

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        means, counts = class_means(task, lambda x: task.encode(reply["model"], x), batches)
        return reply | {"means": means, "held": counts > 0}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means = torch.stack([reply.content["means"] for reply in replies])
        held = torch.stack([reply.content["held"] for reply in replies])
        centres = {
            label: cluster_means(own, finch(own))
            for label in range(task.classes)
            if len(own := means[held[:, label], label])
        }
        classes = [label for label, found in centres.items() for _ in found]
        return super().aggregate(task, server, replies) | {
            "centres": torch.cat(list(centres.values())),
            "classes": torch.tensor(classes, device=means.device),
        }

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        if "classes" not in server:
            return {}
        classes = server["classes"]
        return {"prototypes_per_class": len(classes) / len(classes.unique())}


def contrast(z: Tensor, own: Tensor, centres: Tensor, tau: float) -> Tensor:
    """Per sample −log of its own prototypes' share (`own`: samples × prototypes); 0 where it has none."""
    cosines = on_sphere(z) @ on_sphere(centres).T / tau
    # A sample without prototypes takes all for its own: its share is 1, its term and gradient are 0.
    own = own | ~own.any(dim=1, keepdim=True)
    return cosines.logsumexp(dim=1) - cosines.masked_fill(~own, float("-inf")).logsumexp(dim=1)
