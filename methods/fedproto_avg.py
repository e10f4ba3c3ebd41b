"""FedProto with averaged weights: FedAvg whose clients pull features to the global class means.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Eq. 3-8, in the
form that later papers compare with: prototypes and weights both travel. Client:
CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of z);
afterwards its prototypes are its class means of z under its final model. Server: the mean over the clients
that hold the class, or the mean weighted by count. In the first round there is no prototype, so no term.
λ = 2 follows the FedLSA and GGEUR comparisons.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, Round, State, Task, Tree
from methods.fedavg import FedAvg
from methods.parts.losses import class_sums, cross_entropy, safe_divide


class FedProtoAvg(FedAvg):
    label: ClassVar[str] = "FedProto (avg)"

    lam: float = Field(default=2.0, ge=0)
    """λ, the weight of the pull."""
    prototype_weighting: Literal["mean", "weighted_mean"] = "mean"

    def check(self, task: Task) -> None:
        if not task.has_trainable_features:
            raise ValueError("has no effect on a frozen encoder: choose a model with trainable features")

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if "prototypes" not in message:
            return super().objective(task, client, message)

        def loss(y: Tree, batch: Batch) -> Tensor:
            z = task.encode(y, batch.x)
            pull = (z - message["prototypes"][batch.y]).square().mean(dim=1) * message["known"][batch.y]
            return cross_entropy(task.logits_from(y, z), batch) + self.lam * batch.mean(pull)

        return loss

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def down(server: State, client_id: int) -> Message:
            message = base.down(server, client_id)
            return message | {key: server[key] for key in ("prototypes", "known") if key in server}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, client = base.local(client, message, batches)
            prototypes, counts = class_means(task, reply["model"], batches)
            return reply | {"prototypes": prototypes, "counts": counts}, client

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            server = base.aggregate(server, replies)
            return server | self.global_prototypes(server, replies)

        return Round(down, local, aggregate)

    def global_prototypes(self, server: State, replies: Sequence[Reply]) -> State:
        """The mean per class over the clients that hold it; a class nobody holds keeps what it had."""
        prototypes = torch.stack([reply.content["prototypes"] for reply in replies])
        counts = torch.stack([reply.content["counts"] for reply in replies])
        shares = (counts > 0).to(counts.dtype) if self.prototype_weighting == "mean" else counts
        held = shares.sum(dim=0)
        means = safe_divide((shares[:, :, None] * prototypes).sum(dim=0), held)
        if "prototypes" not in server:
            return {"prototypes": means, "known": (held > 0).to(means.dtype)}
        return {
            "prototypes": torch.where(held[:, None] > 0, means, server["prototypes"]),
            "known": torch.maximum(server["known"], (held > 0).to(means.dtype)),
        }


def class_means(task: Task, params: Tree, batches: Batches) -> tuple[Tensor, Tensor]:
    """Per class the mean of z over the client's samples, and their number."""
    with torch.no_grad():
        parts = [class_sums(task.encode(params, b.x), b, task.classes) for b in batches.once()]
    counts = torch.stack([count for _, count in parts]).sum(dim=0)
    return safe_divide(torch.stack([total for total, _ in parts]).sum(dim=0), counts), counts
