"""FEDGEN: the server learns to generate features of every class, and clients train on them too.

Zhu, Hong and Zhou, "Data-Free Knowledge Distillation for Heterogeneous Federated Learning", ICML 2021. A
generator G(ε, y) makes latent vectors z, the inputs of the clients' heads (everything behind the encoder; on
embeddings with a linear head z is the embedding itself). Server, every round: Adam on
    E_{ε,y} Σ_k w_{k,y} CE(head_k(G(ε, y)), y) + η · exp(−mean_{i,j} ‖ε_i − ε_j‖² · ‖z_i − z_j‖₁),
with both norms divided by their widths, w_{k,y} the share of client k in the round's samples of class y, and
y drawn from the round's label shares p̂. Client:
    CE + α · CE(head(G(ε, ŷ)), ŷ) + β · KL(softmax(head(G(ε', y))) ‖ p(x)),  ŷ ~ p̂, y the batch's labels,
where the first argument of KL has no gradient. α and β shrink by a factor of 0.98 per round; in the first
round, before the generator has learnt anything, there are no such terms. α = β = 0 is FedAvg with a generator
that is not used.

Deviations: the paper takes the CE of the heads' mean logits, this the mean of their CEs (`teachers`); the
generator has no batch norm and no weight decay (public code: 1e-2, `server_weight_decay`), its optimiser
starts fresh every round, and ŷ follows p̂ as printed (public code: all labels alike).
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from torch.func import vmap

from methods.base import (
    Adam,
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
    train_at_server,
)
from methods.fedavg import FedAvg
from methods.shared.losses import class_sums
from methods.shared.two_layers import new_layers, two_layers


class FedGen(FedAvg):
    label = "FEDGEN"
    neutral = {"alpha": 0.0, "beta": 0.0}
    stacks_server = False

    alpha: float = Field(default=10.0, ge=0)
    """α, the weight of classifying generated vectors; 10 as in the public code."""
    beta: float = Field(default=10.0, ge=0)
    """β, the weight of the distillation; 10 as in the public code."""
    decay: float = Field(default=0.98, gt=0, le=1)
    """The factor of α and β per round; 0.98 as in the public code."""
    eta: float = Field(default=1.0, ge=0)
    """η, the weight of the generator's diversity; 1 as in the public code."""
    generated: int = Field(default=32, ge=1)
    """Generated vectors per client step; 32 as in the public code."""
    noise_size: int = Field(default=32, ge=1)
    """Width of the noise ε; 32 as in the public code."""
    hidden: int = Field(default=256, ge=1)
    """Width of the generator's hidden layer; 256 as in the public code."""
    server_steps: int = Field(default=50, ge=0)
    """Generator steps per round; 50 as in the public code."""
    server_batch: int = Field(default=128, ge=2)
    """Generated vectors per generator step; 128 as in the public code."""
    server_lr: float = Field(default=3e-4, gt=0)
    """The generator's learning rate (Adam); 3e-4 as in the public code."""
    server_weight_decay: float = option(0.0, ge=0)
    """The weight decay of the generator's optimiser; 1e-2 in the public code."""
    teachers: Literal["losses", "logits"] = option("losses")
    """What is averaged over the clients' heads with the weights w: their losses, or their logits, of which
    the loss is then taken, as in the paper."""

    def server(self, task: Task) -> State:
        return super().server(task) | {
            "generator": self.new_generator(task),
            "labels": torch.zeros(task.classes, device=task.device),
            "rounds": torch.tensor(0, device=task.device),
        }

    def new_generator(self, task: Task) -> Tree:
        widths = (self.noise_size + task.classes, self.hidden, task.model.feature_size)
        return new_layers(*widths, task.generator("generator")).to(task.device)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if (is_off(self.alpha) and is_off(self.beta)) or "generator" not in message:
            return super().objective(task, client, message)
        generator, labels = message["generator"], message["labels"]
        weight: Tensor = self.decay ** message["rounds"]

        def head_on_generated(params: Tree, batch: Batch, y: Tensor, stream: int) -> Tensor:
            noise = batch.normal(len(y), self.noise_size, stream=stream)
            return task.logits_from(params, make_latent(generator, noise, y)).log_softmax(dim=-1)

        def loss(params: Tree, batch: Batch) -> Tensor:
            logits = task.logits(params, batch.x)
            drawn = labels_at(batch.uniform(self.generated), labels)
            log_p = head_on_generated(params, batch, drawn, stream=1)
            classified = -log_p.gather(-1, drawn[:, None]).mean()
            target = head_on_generated(params, batch, batch.y, stream=2).detach()
            divergence = (target.exp() * (target - logits.log_softmax(dim=-1))).sum(dim=-1)
            terms = self.alpha * classified + self.beta * batch.mean(divergence)
            return cross_entropy(logits, batch) + batch.term("generated", weight * terms)

        return loss

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server) if int(server["rounds"]) else {"model": server["model"]}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        counts = [class_sums(batch.y[:, None].float(), batch, task.classes)[1] for batch in batches.once()]
        return reply | {"counts": torch.stack(counts).sum(dim=0)}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        counts = torch.stack([reply.content["counts"] for reply in replies])
        return super().aggregate(task, server, replies) | {
            "generator": self.taught(task, server, [reply.content["model"] for reply in replies], counts),
            "labels": counts.sum(dim=0) / counts.sum(),
            "rounds": server["rounds"] + 1,
        }

    def taught(self, task: Task, server: State, models: Sequence[Tree], counts: Tensor) -> Tree:
        """The generator after its steps; `counts` has the clients' samples per class, one row each."""
        head = models[0].without(models[0].part("encoder"))
        heads = Tree({name: torch.stack([model[name] for model in models]) for name in head})
        shares = counts / counts.sum(dim=0).clamp(min=1)

        def loss(generator: Tree, batch: Batch) -> Tensor:
            z = make_latent(generator, batch.x, batch.y)
            logits = vmap(lambda head: task.logits_from(head, z))(heads)
            weights = shares[:, batch.y]
            if self.teachers == "logits":
                taught = F.cross_entropy((weights[:, :, None] * logits).sum(dim=0), batch.y)
            else:
                losses = -logits.log_softmax(dim=-1)[:, torch.arange(len(z), device=z.device), batch.y]
                taught = (weights * losses).sum(dim=0).mean()
            return taught + self.eta * diversity_loss(batch.x, z)

        draws = self.draws(task, int(server["rounds"]), counts.sum(dim=0))
        optimiser = Adam(lr=self.server_lr, weight_decay=self.server_weight_decay)
        return train_at_server(server["generator"], loss, draws, optimiser)

    def draws(self, task: Task, number: int, counts: Tensor) -> Iterator[Batch]:
        """Noise and labels for the generator's steps of a round."""
        draw = task.generator("generator steps", number)
        for _ in range(self.server_steps):
            y = torch.multinomial(counts.cpu(), self.server_batch, replacement=True, generator=draw)
            noise = torch.randn(self.server_batch, self.noise_size, generator=draw)
            yield Batch(noise.to(task.device), y.to(task.device))


def make_latent(generator: Tree, noise: Tensor, y: Tensor) -> Tensor:
    """z = G(ε, y)."""
    classes = generator["W1"].shape[1] - noise.shape[1]
    labels = (y[:, None] == torch.arange(classes, device=y.device)).to(noise.dtype)
    return two_layers(generator, torch.cat([noise, labels], dim=1))


def diversity_loss(noise: Tensor, z: Tensor) -> Tensor:
    """Small where vectors from different noise are different."""
    apart = torch.cdist(z, z, p=1) / z.shape[1]
    noise_apart = torch.cdist(noise, noise).square() / noise.shape[1]
    return (-(noise_apart * apart).mean()).exp()


def labels_at(numbers: Tensor, shares: Tensor) -> Tensor:
    """Labels with these shares, from numbers evenly spread over [0, 1)."""
    return (numbers[:, None] >= shares.cumsum(dim=0)).sum(dim=-1).clamp(max=len(shares) - 1)
