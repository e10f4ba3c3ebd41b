"""FEDGEN: Zhu, Hong and Zhou, ICML 2021, with the deviations that the documentation names.

Server, after every round: Adam on
    E Σ_k w_{k,y} CE(head_k(G(ε, y)), y) + η exp(−mean_ij ‖ε_i − ε_j‖² ‖z_i − z_j‖₁),
both norms divided by their widths, y from the round's label shares, w_{k,y} client k's share of class y.
Client, from round 2 on: CE + α CE(head(G(ε, ŷ)), ŷ) + β KL(softmax(head(G(ε', y))) ‖ p(x)).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class Generator(nn.Module):
    """A perceptron with one hidden layer, from noise and a label to an output of the encoder."""

    W1: nn.Parameter
    b1: nn.Parameter
    W2: nn.Parameter
    b2: nn.Parameter

    def __init__(self, start: Any) -> None:
        super().__init__()
        for name in ("W1", "b1", "W2", "b2"):
            setattr(self, name, nn.Parameter(start[f"generator.{name}"].clone()))

    def forward(self, noise: Tensor, labels: Tensor, classes: int) -> Tensor:
        given = torch.cat([noise, F.one_hot(labels, classes).to(noise)], dim=1)
        return F.relu(given @ self.W1.T + self.b1) @ self.W2.T + self.b2


def head(model: Any, z: Tensor) -> Tensor:
    logits: Tensor = model.classifier(model.projector(z))
    return logits


class Reference(FedAvg):
    cases = (
        Case(
            {"alpha": 0.5, "beta": 0.7, "decay": 0.8, "eta": 2.0, "generated": 6, "noise_size": 3}
            | {"hidden": 8, "server_steps": 4, "server_batch": 7, "server_lr": 0.02},
            tolerance=1e-7,  # Adam makes whole steps of gradients that are little more than rounding
        ),
        Case(
            {"server_steps": 2, "hidden": 8, "noise_size": 3, "server_batch": 5, "alpha": 2.0, "beta": 0.0}
            | {"teachers": "logits", "server_weight_decay": 0.1},
            tolerance=1e-7,
        ),
    )

    def start(self) -> None:
        self.generator = Generator(self.given.server_start)
        self.shares: Tensor | None = None

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        logits = model(x)
        plain = F.cross_entropy(logits, y)
        if self.shares is None:
            return plain
        s, classes = self.settings, self.given.classes
        shrunk = s["decay"] ** (number - 1)
        chances = self.given.noise(client, number, step, "uniform", (s["generated"],))
        labels = torch.searchsorted(self.shares.cumsum(0), chances, right=True).clamp(max=classes - 1)
        noise = self.given.noise(client, number, step, "normal", (s["generated"], s["noise_size"]), stream=1)
        made = self.generator(noise, labels, classes).detach()
        classified = F.cross_entropy(head(model, made), labels)
        noise = self.given.noise(client, number, step, "normal", (len(y), s["noise_size"]), stream=2)
        with torch.no_grad():
            teacher = head(model, self.generator(noise, y, classes)).softmax(dim=1)
        distilled = (teacher * (teacher.log() - logits.log_softmax(dim=1))).sum(dim=1).mean()
        return plain + shrunk * (s["alpha"] * classified + s["beta"] * distilled)

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        classes = self.given.classes
        counts = torch.stack(
            [torch.bincount(self.given.data[client][1], minlength=classes) for client in trained]
        ).to(torch.get_default_dtype())
        self.shares = counts.sum(dim=0) / counts.sum()
        of_class = counts / counts.sum(dim=0).clamp(min=1)
        self.teach(list(trained.values()), self.shares, of_class, number)
        super().aggregate(trained, number)

    def teach(self, models: list[Any], shares: Tensor, of_class: Tensor, number: int) -> None:
        s, classes = self.settings, self.given.classes
        draw = self.given.generator("generator steps", number - 1)
        decay = s.get("server_weight_decay", 0.0)
        optimiser = torch.optim.Adam(self.generator.parameters(), s["server_lr"], weight_decay=decay)
        for _ in range(s["server_steps"]):
            labels = torch.multinomial(shares, s["server_batch"], replacement=True, generator=draw)
            noise = torch.randn(s["server_batch"], s["noise_size"], generator=draw)
            z = self.generator(noise, labels, classes)
            says = torch.stack([of_class[k][labels] for k in range(len(models))])
            logits = torch.stack([head(model, z) for model in models])
            if s.get("teachers") == "logits":
                taught = F.cross_entropy((says[:, :, None] * logits).sum(dim=0), labels)
            else:
                losses = torch.stack([F.cross_entropy(each, labels, reduction="none") for each in logits])
                taught = (says * losses).sum(dim=0).mean()
            apart_noise = (noise[:, None] - noise[None]).square().mean(dim=2)
            apart = (z[:, None] - z[None]).abs().mean(dim=2)
            loss = taught + s["eta"] * torch.exp(-(apart_noise * apart).mean())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def server_state(self) -> dict[str, Tensor]:
        return {f"generator.{name}": leaf for name, leaf in self.generator.named_parameters()}
