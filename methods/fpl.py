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
from methods.shared.finch import clustered_prototypes, contrast, prototypes_per_class
from methods.shared.losses import on_sphere
from methods.shared.prototypes import class_means


class FPL(FedAvg):
    label = "FPL"
    neutral = "contrasts features with prototypes at every setting"
    stacks_server = False

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

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.encode(params, batch.x)
            pull = (z - middle[batch.y]).square().mean(dim=1) * known[batch.y]
            cosines = on_sphere(z) @ on_sphere(centres).T / self.tau
            terms = contrast(cosines, member[batch.y]) + pull
            return cross_entropy(task.logits_from(params, z), batch) + batch.mean(terms)

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
        by_class = [means[held[:, label], label] for label in range(task.classes)]
        return super().aggregate(task, server, replies) | clustered_prototypes(by_class)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return prototypes_per_class(server)
