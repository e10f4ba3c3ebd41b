"""Class prototypes: clients send the class means of their features and pull features to global ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import (
    Batch,
    Batches,
    FedAlgorithm,
    Loss,
    Message,
    Reply,
    State,
    Task,
    Tree,
    cross_entropy,
    is_off,
)
from methods.shared.averaging import Averaging
from methods.shared.losses import class_sums, safe_divide

Prediction = Literal["prototypes", "classifier"]
SENT = ("model", "prototypes", "known")
"""What travels to the clients of all that a server keeps."""


class PrototypeLearning(FedAlgorithm, ABC):
    """A client's side, the same whatever the server makes of the clients' class means.

    The server keeps `prototypes` (classes × D) and `known`, 1 for the classes that have one: a class without
    one is never a target. Before the first aggregation it has neither, and the clients no term.
    """

    lam: float = Field(ge=0)
    """λ, the weight of the pull."""
    prediction: Prediction
    """The nearest prototype's class, or the classifier's: what the table shows; the other is recorded too."""

    def check(self, task: Task) -> None:
        if not task.has_trainable_features:
            raise ValueError(
                "has no effect on a frozen encoder: choose a model with trainable features, such as "
                "{name: head, layers: 2, hidden: 256}"
            )

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.lam) or "prototypes" not in message:
            return self.plain_objective(task)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = self.features(task, params, batch.x)
            pull = self.attraction(z, batch, message["prototypes"], message["known"])
            return cross_entropy(task.logits_from(params, z), batch) + batch.term("pull", self.lam * pull)

        return loss

    def plain_objective(self, task: Task) -> Loss:
        """Without prototypes."""
        return super().objective(task, {}, {})

    def features(self, task: Task, params: Tree, x: Tensor) -> Tensor:
        """z, in whose space the prototypes are."""
        return task.encode(params, x)

    def fit(self, task: Task, start: Tree, client: State, message: Message, batches: Batches) -> Tree:
        """A client's training."""
        return task.train(start, self.objective(task, client, message), batches)

    def attraction(self, z: Tensor, batch: Batch, prototypes: Tensor, known: Tensor) -> Tensor:
        """The mean of a batch's pulls; samples whose class has no prototype add 0."""
        return batch.mean(self.pulls(z, batch.y, prototypes) * known[batch.y])

    def pulls(self, z: Tensor, y: Tensor, prototypes: Tensor) -> Tensor:
        """‖z − P_y‖²/D, row by row."""
        return (self.scaled(z) - prototypes[y]).square().mean(dim=1)

    def closeness(self, z: Tensor, prototypes: Tensor, known: Tensor) -> Tensor:
        """Larger for nearer prototypes, and −∞ for classes without one."""
        # −‖z − P‖² without ‖z‖², which is the same for all classes
        near = 2 * self.scaled(z) @ prototypes.T - prototypes.square().sum(dim=-1)
        return near.masked_fill(known == 0, float("-inf"))

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {key: server[key] for key in SENT if key in server}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        model = client["model"] if client else server["model"]
        z = self.features(task, model, x)
        if self.prediction == "classifier" or "prototypes" not in server:
            return task.logits_from(model, z)
        return self.closeness(z, server["prototypes"], server["known"])

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        other: Prediction = "classifier" if self.prediction == "prototypes" else "prototypes"
        return {other: self.model_copy(update={"prediction": other})}

    def local_prototypes(self, task: Task, params: Tree, batches: Batches) -> Message:
        """Per class the mean of z over the client's samples, and their number."""
        means, counts = class_means(task, lambda x: self.features(task, params, x), batches)
        return {"prototypes": self.scaled(means), "counts": counts}

    @abstractmethod
    def renewed_prototypes(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        """The entries of the server's state that the clients' class means change."""

    def scaled(self, vectors: Tensor) -> Tensor:
        """Features and prototypes as they are compared."""
        return vectors


class PrivateNetworks(PrototypeLearning, ABC):
    """Only prototypes travel; every client keeps a model of its own, all with the same weights at first."""

    has_global_model = False

    def server(self, task: Task) -> State:
        return {}

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        trained = self.fit(task, client["model"], client, message, batches)
        return self.local_prototypes(task, trained, batches), {"model": trained}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return {**server, **self.renewed_prototypes(task, server, replies)}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"classes_with_prototype": float(server["known"].sum())} if "known" in server else {}


class AveragedNetworks(PrototypeLearning, Averaging, ABC):
    """Prototypes and weights both travel."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        trained = self.fit(task, message["model"], client, message, batches)
        return {"model": trained} | self.local_prototypes(task, trained, batches), {}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        renewed = self.renewed_prototypes(task, server, replies)
        return {**server, "model": self.average(replies), **renewed}

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        if not ("known" in server and server["known"].all()):
            return None
        return self.scaled(self.features(task, server["model"], x)), server["prototypes"]


def class_means(task: Task, features: Callable[[Tensor], Tensor], batches: Batches) -> tuple[Tensor, Tensor]:
    """Per class the mean of z over the client's samples (0 where it has none), and their number."""
    with task.evaluation():
        parts = [class_sums(features(b.x), b, task.classes) for b in batches.once()]
    totals = torch.stack([total for total, _ in parts]).sum(dim=0)
    counts = torch.stack([count for _, count in parts]).sum(dim=0)
    return safe_divide(totals, counts), counts
