"""Proto: any method whose clients send models, with FedProto's pull of features to global class means.

The pull is that of Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI
2022: to whatever the inner method's clients minimise, λ · mean_i ‖z_i − P_{y_i}‖² / D is added over the
samples whose class has a global prototype P (D = width of z). Beside its reply a client sends its class means
of z under the model that it sends, and their counts; the server takes the mean over the clients that hold the
class. In the first round there is no prototype, so no term. `proto+fedavg` is `fedproto_avg` with the
classifier's prediction. λ = 0 leaves the inner method as it is.

The inner method's clients must send a model, trained on their `objective`; a method without a global model
and one that has prototypes of its own are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from methods.base import Batch, Batches, FedAlgorithm, Loss, Message, Reply, State, Task, Tree, is_off
from methods.shared.losses import safe_divide
from methods.shared.prototypes import PrototypeLearning, class_means
from methods.wrappers.base import Wrapper, inner, outer


class Proto(Wrapper):
    short_label = "Proto"
    neutral = {"lam": 0.0}

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull; 1 as in FedProto's paper."""

    @model_validator(mode="after")
    def _can_be_pulled(self) -> Self:
        if not self.inner.has_global_model or isinstance(self.inner, PrototypeLearning):
            raise ValueError(
                f"cannot pull the features of {self.inner.label} to prototypes: choose a method whose "
                "clients send models and that has no prototypes of its own, as in proto+fedprox"
            )
        return self

    @property
    def trained(self) -> FedAlgorithm:
        if is_off(self.lam):
            return self.inner
        # Without validation, as numbers may be tensors here.
        pulled: FedAlgorithm = with_pull(type(self.inner)).model_construct(
            **dict(self.inner), pull_weight=self.lam
        )
        return pulled

    def check(self, task: Task) -> None:
        super().check(task)
        if not task.has_trainable_features:
            raise ValueError("pulls features, which a frozen encoder does not train: choose another model")

    def down(self, task: Task, server: State, client_id: int) -> Message:
        known = {key: server[key] for key in ("prototypes", "known") if key in server}
        return super().down(task, server, client_id) | known

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = self.trained.local(task, inner(client), message, batches)
        means, counts = class_means(task, lambda x: task.encode(reply["model"], x), batches)
        return reply | {"means": means, "counts": counts}, outer(kept)

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        means = torch.stack([reply.content["means"] for reply in replies])
        held = (torch.stack([reply.content["counts"] for reply in replies]) > 0).to(means.dtype)
        holders = held.sum(dim=0)
        prototypes, known = safe_divide((held[:, :, None] * means).sum(dim=0), holders), holders.clamp(max=1)
        if "prototypes" in server:
            prototypes = torch.where(holders[:, None] > 0, prototypes, server["prototypes"])
            known = torch.maximum(known, server["known"])
        return super().aggregate(task, server, replies) | {"prototypes": prototypes, "known": known}


@cache
def with_pull(kind: type[FedAlgorithm]) -> Any:
    """The same method with the pull in its clients' objective."""

    class Pulled(kind):  # type: ignore[valid-type, misc]
        pull_weight: float
        """λ."""

        def objective(self, task: Task, client: State, message: Message) -> Loss:
            plain = super().objective(task, client, message)
            if "prototypes" not in message:
                return plain  # type: ignore[no-any-return]
            prototypes, known = message["prototypes"], message["known"]

            def loss(params: Tree, batch: Batch) -> Tensor:
                z = task.encode(params, batch.x)
                pulls = (z - prototypes[batch.y]).square().mean(dim=1) * known[batch.y]
                value: Tensor = plain(params, batch)
                return value + batch.term("pull", self.pull_weight * batch.mean(pulls))

            return loss

    return Pulled
