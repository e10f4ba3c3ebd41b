"""FedSR: features are drawn at random around what the encoder says, and kept simple.

Nguyen, Torr and Lim, "FedSR: A Simple and Effective Domain Generalization Method for Federated Learning",
NeurIPS 2022. A sample's features are z ~ N(μ(x), σ(x)), with one standard deviation per dimension. Client:
    CE(classifier(z), y) + α_L2R ‖z‖² + α_CMI KL(N(Cμ, |C|σ) ‖ N(r_y, s_y)),
averaged over the batch, where r and s (classes × width) and the number C are learnt too. They and the layer
that gives σ are part of the model: they travel and are averaged. Prediction: the mean over 20 draws of z of
the classifier's probabilities.

z is what the classifier works on: μ is the projector's output, and σ = softplus of a second linear layer
beside the projector, which together are one layer of double width as in the public code. In a model without a
projector μ is the encoder's output. At the start r = 0, s = softplus(1) and C = 1, as there. The draws of a
prediction are the same 20 for every sample and round, so that a prediction depends on model and sample alone.

Deviations: the public code has ‖z‖ instead of ‖z‖², never averages r, s and C, and takes C for a positive
number; σ is at least 1e-6, so that its logarithm is finite.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg

WEIGHT, BIAS = "latent.sigma.weight", "latent.sigma.bias"
MEAN, SPREAD, SCALE = "latent.r", "latent.s", "latent.C"
LATENT = (WEIGHT, BIAS, MEAN, SPREAD, SCALE)
SMALLEST = 1e-6
"""The smallest standard deviation."""


class FedSR(FedAvg):
    label = "FedSR"
    neutral = "draws features at random at every setting"
    stacks_predictions = False

    l2r: float = Field(default=0.01, ge=0)
    """α_L2R, the weight of ‖z‖²; 0.01 as the public code has it for PACS."""
    cmi: float = Field(default=0.001, ge=0)
    """α_CMI, the weight of the divergence from the class's own distribution; 0.001, likewise."""
    draws: int = Field(default=20, ge=1)
    """Draws per sample in prediction; 20 as in the public code."""

    def check(self, task: Task) -> None:
        task.require_trainable_embeddings()

    def server(self, task: Task) -> State:
        draw = task.generator("latent")
        inputs, width = task.model.feature_size, task.model.embedding_size

        def uniform(*shape: int) -> Tensor:
            return (2 * torch.rand(*shape, generator=draw) - 1) / float(inputs**0.5)

        latent = Tree(
            {
                WEIGHT: uniform(width, inputs),
                BIAS: uniform(width),
                MEAN: torch.zeros(task.classes, width),
                SPREAD: torch.ones(task.classes, width),
                SCALE: torch.ones(()),
            }
        )
        return {"model": task.initial | latent.to(task.device)}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        def loss(params: Tree, batch: Batch) -> Tensor:
            mean, sigma = distribution(task, params, batch.x)
            z = mean + sigma * batch.normal(*mean.shape)
            divergence = class_divergence(params, mean, sigma, batch.y)
            simple = self.l2r * z.square().sum(dim=1) + self.cmi * divergence
            return cross_entropy(task.classify(params, z), batch) + batch.mean(simple)

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        loss = self.objective(task, client, message)
        return {"model": task.train(message["model"], loss, batches, also=LATENT)}, {}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        mean, sigma = distribution(task, server["model"], x)
        noise = torch.randn(self.draws, 1, mean.shape[1], generator=task.generator("latent draws"))
        z = mean + sigma * noise.to(mean.device)
        log_p = task.classify(server["model"], z.flatten(end_dim=1)).log_softmax(dim=-1)
        return log_p.view(self.draws, len(x), -1).logsumexp(dim=0)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"latent_scale": float(server["model"][SCALE])}


def distribution(task: Task, params: Tree, x: Tensor) -> tuple[Tensor, Tensor]:
    """μ(x) and σ(x)."""
    features = task.encode(params, x)
    sigma = F.softplus(F.linear(features, params[WEIGHT], params[BIAS]))
    return task.project(params, features), sigma.clamp(min=SMALLEST)


def class_divergence(params: Tree, mean: Tensor, sigma: Tensor, y: Tensor) -> Tensor:
    """KL(N(Cμ, |C|σ) ‖ N(r_y, s_y)) per sample."""
    r, s, scale = params[MEAN][y], F.softplus(params[SPREAD])[y], params[SCALE]
    mean, sigma = scale * mean, scale.abs().clamp(min=SMALLEST) * sigma
    apart = (sigma.square() + (mean - r).square()) / (2 * s.square())
    return (s.log() - sigma.log() + apart - 0.5).sum(dim=1)
