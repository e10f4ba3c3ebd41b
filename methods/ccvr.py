"""CCVR: FedAvg whose classifier is trained again at the server, on features drawn from class Gaussians.

Luo et al., "No Fear of Heterogeneity: Classifier Calibration for Federated Learning with Non-IID Data",
NeurIPS 2021, Algorithm 1. z is what the classifier works on, under one model for all clients. Up, for each
class c of a client with at least `min_class_count` samples: n_ck, the mean μ_ck and the covariance Σ_ck (1/n)
of z, computed in double and sent in single precision. Server: N_c = Σ_k n_ck, μ_c = Σ_k n_ck μ_ck / N_c and
Σ_c = (Σ_k n_ck (Σ_ck + μ_ck μ_ckᵀ) − N_c μ_c μ_cᵀ) / (N_c − 1), the unbiased covariance of all features.
It draws `samples_per_class` features μ_c + εΣ_c^½, ε ~ N(0, I), for every class with N_c > 0 (Σ^½ = V√λVᵀ,
eigenvalues below a millionth of the largest count as 0), and beginning at the model's own classifier takes
`server_steps` steps of Adam on their cross-entropy, in mini-batches of `server_batch`, reshuffled when all
have been seen. Random numbers are the same in every round. The calibrated model predicts; it is never sent,
so the rounds are FedAvg's. The accuracy of FedAvg's model is recorded beside it.

The paper calibrates once: after the last round clients get the model and send their statistics. Here this is
done for every round, so that every evaluated round shows what the method gives if it ends there:
- If something before the classifier is trained, clients compute the statistics with the model that they are
  sent, before they train it, and send them with their reply. So round t calibrates the model of round t − 1,
  as the paper does in t exchanges, and round 1 the initial model. The statistics travel in every round.
- Otherwise features never change. All clients send the statistics once, before round 1; the virtual features
  are drawn once, and round t calibrates the model of round t.

The numbers of steps and the learning rate are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Adam, Batches, FedAlgorithm, Message, Prelude, Reply, Samples, State, Task, Tree
from methods.fedavg import FedAvg
from methods.shared.class_moments import add_moments, class_moments, gaussians, moments_of
from methods.shared.features import embedded
from methods.shared.preludes import Upload
from methods.shared.virtual import normal_samples, trained_classifier

Prediction = Literal["calibrated", "averaged"]


class CCVR(FedAvg):
    label = "CCVR"
    neutral = {"server_steps": 0}
    stacks_server = False

    samples_per_class: int = Field(default=500, ge=1)
    """M_c, the virtual features per class; the paper varies it from 50 to 2000."""
    server_steps: int = Field(default=200, ge=0)
    """Steps of the server on the virtual features after every round; ours."""
    server_batch: int = Field(default=64, ge=1)
    """Virtual features per step; ours."""
    server_lr: float = Field(default=1e-3, gt=0)
    """The learning rate of these steps, with Adam; ours."""
    min_class_count: int = Field(default=2, ge=1)
    """Classes of which a client has fewer samples are not described; 2: no mean is a single sample."""
    prediction: Prediction = "calibrated"
    """The classifier that predicts; the accuracy of the other one is recorded too."""

    def check(self, task: Task) -> None:
        if self.server_steps:
            task.require_trainable_classifier()

    def server(self, task: Task) -> State:
        return super().server(task) | {"calibrated": task.initial}

    def prelude(self, task: Task) -> Prelude:
        up = StatisticsUp(self.min_class_count, self.samples_per_class)
        return [] if task.has_trainable_embeddings else [up]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        if not task.has_trainable_embeddings:
            return reply, kept
        return reply | class_moments(task, message["model"], batches, self.min_class_count), kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        following = super().aggregate(task, server, replies)
        if not task.has_trainable_embeddings:
            model, virtual = following["model"], server.get("virtual")
        else:
            everyone, sums = torch.arange(task.classes, device=task.device), State()
            for reply in replies:
                sums = add_moments(sums, task.classes, everyone, reply.content)
            model, virtual = server["model"], virtual_features(task, sums, self.samples_per_class)
        return following | {"calibrated": self.calibrated(task, model, virtual)}

    def calibrated(self, task: Task, model: Tree, virtual: State | None) -> Tree:
        """The model with its classifier trained on virtual features."""
        if virtual is None:
            return model
        samples, draw = Samples(virtual["x"], virtual["y"]), task.generator("calibration")
        optimiser = Adam(lr=self.server_lr)
        return model | trained_classifier(
            task, model, samples, self.server_steps, self.server_batch, optimiser, draw
        )

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return task.logits(server["model" if self.prediction == "averaged" else "calibrated"], x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        other: Prediction = "averaged" if self.prediction == "calibrated" else "calibrated"
        return {other: self.model_copy(update={"prediction": other})}


def virtual_features(task: Task, sums: State, samples_per_class: int) -> State | None:
    """Features drawn from the Gaussians of all classes that somebody has; None: nobody has any."""
    known, means, covariances = gaussians(sums)
    if not len(known):
        return None
    drawn = [
        normal_samples(mean, covariance, samples_per_class, task.generator("virtual", label))
        for label, mean, covariance in zip(known.tolist(), means, covariances, strict=True)
    ]
    return {"x": torch.cat(drawn).float(), "y": known.repeat_interleave(samples_per_class)}


@dataclass(frozen=True)
class StatisticsUp(Upload):
    """Before round 1, clients describe their features; the server draws features like them."""

    min_class_count: int
    samples_per_class: int

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = embedded(task, task.initial, batches)
        shown = torch.nonzero(own.y.bincount(minlength=task.classes) >= self.min_class_count)[:, 0]
        return {"classes": shown, **moments_of(own.x, own.y, shown)}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        before = server.get("sums", {})
        return server | {"sums": add_moments(before, task.classes, reply.content["classes"], reply.content)}

    def finish(self, task: Task, server: State) -> State:
        kept = {key: value for key, value in server.items() if key != "sums"}
        sums = server.get("sums")
        virtual = None if sums is None else virtual_features(task, sums, self.samples_per_class)
        return kept if virtual is None else kept | {"virtual": virtual}
