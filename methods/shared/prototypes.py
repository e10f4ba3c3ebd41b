"""Class prototypes: clients send the class means of their features and pull features to the global means."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, FedAlgorithm, Loss, Message, Reply, State, Task, Tree, cross_entropy
from methods.shared.losses import class_sums, on_sphere, safe_divide

Prediction = Literal["prototypes", "classifier"]


class PrototypeLearning(FedAlgorithm, ABC):
    """What the two forms of FedProto share.

    The server keeps `prototypes` (classes × D) and `known`, 1 for the classes that have one: a class without
    one is never a target. Before the first aggregation it has neither, and the clients no term. A projector
    on a frozen backbone, as some public code has it, is the model `head` with two layers on an encoder.
    """

    lam: float = Field(ge=0)
    """λ, the weight of the pull."""
    prototype_weighting: Literal["mean", "weighted_mean"] = "mean"
    """A global prototype is the mean over the clients that hold the class, or weighted by their counts."""
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """The pull on z_i: ‖z_i − P_y‖²/D, or CE(nor(z_i)·nor(P)ᵀ/T, y_i) over the classes with a prototype."""
    temperature: float = Field(default=0.5, gt=0)
    """T, for the cosine distance."""
    normalize_prototypes: bool = False
    """Scale the clients' and the global prototypes to length 1 and compare them with nor(z) instead of z."""
    prediction: Prediction
    """The nearest prototype's class, or the classifier's: what the table shows; the other is recorded too."""

    def check(self, task: Task) -> None:
        if not task.has_trainable_features:
            raise ValueError(
                "has no effect on a frozen encoder: choose a model with trainable features, such as "
                "{name: head, layers: 2, hidden: 256}"
            )

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if self.lam == 0 or "prototypes" not in message:
            return super().objective(task, client, message)

        def loss(y: Tree, batch: Batch) -> Tensor:
            z = task.encode(y, batch.x)
            pull = self.pull(z, batch.y, message["prototypes"], message["known"])
            classified = cross_entropy(task.logits_from(y, z), batch)
            return classified + batch.term("pull", self.lam * batch.mean(pull))

        return loss

    def pull(self, z: Tensor, y: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        """Per sample; 0 where the sample's class has no prototype."""
        if self.distance == "euclidean":
            return (self.scaled(z) - prototypes[y]).square().mean(dim=1) * known[y]
        similarity = self.closeness(z, prototypes, known) / self.temperature
        term = -similarity.log_softmax(dim=-1).gather(-1, y[:, None])[:, 0]
        return torch.where(known[y] > 0, term, 0.0)

    def closeness(self, z: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        """Larger for nearer prototypes, and −∞ for classes without one."""
        if self.distance == "euclidean":  # −‖z − P‖² without ‖z‖², which is the same for all classes
            near = 2 * self.scaled(z) @ prototypes.T - prototypes.square().sum(dim=-1)
        else:
            near = on_sphere(z) @ on_sphere(prototypes).T
        return near.masked_fill(known == 0, float("-inf"))

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        model = client["model"] if client else server["model"]
        z = task.encode(model, x)
        if self.prediction == "classifier" or "prototypes" not in server:
            return task.logits_from(model, z)
        return self.closeness(z, server["prototypes"], server["known"])

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        other: Prediction = "classifier" if self.prediction == "prototypes" else "prototypes"
        return {other: self.model_copy(update={"prediction": other})}

    def local_prototypes(self, task: Task, params: Tree, batches: Batches) -> Message:
        """Per class the mean of z over the client's samples, and their number."""
        with task.evaluation():
            parts = [class_sums(task.encode(params, b.x), b, task.classes) for b in batches.once()]
        totals = torch.stack([total for total, _ in parts]).sum(dim=0)
        counts = torch.stack([count for _, count in parts]).sum(dim=0)
        return {"prototypes": self.scaled(safe_divide(totals, counts)), "counts": counts}

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
