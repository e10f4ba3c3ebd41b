"""FedTGP with averaged weights: Zhang et al., AAAI 2024.

Client: CE + λ · mean_i ‖z_i − P_{y_i}‖² / D. Server: P = Θ(R), Θ a two-layer perceptron, trained by SGD on
the clients' class means p by CE(−(‖p − P‖ + δ · onehot(y)), y); δ is the largest over the classes of the
distance to the nearest other class, between the means over the clients, at most `margin`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg
from tests.references.prototypes import class_means


class Maker(nn.Module):
    R: nn.Parameter
    W1: nn.Parameter
    b1: nn.Parameter
    W2: nn.Parameter
    b2: nn.Parameter

    def __init__(self, start: Any) -> None:
        super().__init__()
        for name in ("R", "W1", "b1", "W2", "b2"):
            setattr(self, name, nn.Parameter(start[f"maker.{name}"].clone()))

    def forward(self) -> Tensor:
        return F.relu(self.R @ self.W1.T + self.b1) @ self.W2.T + self.b2


class Reference(FedAvg):
    cases = (
        Case({"lam": 2.0, "server_epochs": 4, "server_batch": 3, "server_lr": 0.1}),
        Case({"lam": 2.0, "server_epochs": 2, "margin": 0.3}, optimiser="adam"),
    )

    def start(self) -> None:
        self.maker = Maker(self.given.server_start)
        self.prototypes: dict[int, Tensor] = {}
        self.uploads: list[dict[int, tuple[Tensor, int]]] = []

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.encoder(x)
        terms = [
            (sample - self.prototypes[label]).square().mean()
            if label in self.prototypes
            else sample.sum() * 0
            for sample, label in zip(z, y.tolist(), strict=True)
        ]
        plain = F.cross_entropy(model.classifier(model.projector(z)), y)
        return plain + self.settings["lam"] * torch.stack(terms).mean()

    def client_round(self, client: int, number: int) -> Any:
        model = super().client_round(client, number)
        self.uploads.append(class_means(model, *self.given.data[client]))
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        self.train_prototypes(number)
        self.uploads = []

    def train_prototypes(self, number: int) -> None:
        held = sorted({label for upload in self.uploads for label in upload})
        means = {
            label: torch.stack([upload[label][0] for upload in self.uploads if label in upload]).mean(dim=0)
            for label in held
        }
        gaps = [
            min(float((means[one] - means[other]).norm()) for other in held if other != one) for one in held
        ]
        margin = min(max(gaps), self.settings["margin"])
        points = [(upload[label][0], label) for upload in self.uploads for label in sorted(upload)]
        draw = self.given.generator("prototype steps", number - 1)
        optimiser = torch.optim.SGD(self.maker.parameters(), self.settings["server_lr"])
        for _ in range(self.settings["server_epochs"]):
            order = torch.randperm(len(points), generator=draw).tolist()
            for first in range(0, len(points), self.settings["server_batch"]):
                chosen = [points[i] for i in order[first : first + self.settings["server_batch"]]]
                p, y = (
                    torch.stack([point for point, _ in chosen]),
                    torch.tensor([label for _, label in chosen]),
                )
                apart = (p[:, None] - self.maker()[None]).square().sum(dim=2).clamp(min=1e-12).sqrt()
                logits = -(apart + margin * F.one_hot(y, self.given.classes))
                loss = F.cross_entropy(logits, y)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        made = self.maker().detach()
        self.prototypes = {label: made[label] for label in sorted({*self.prototypes, *held})}

    def server_state(self) -> dict[str, Tensor]:
        return {f"maker.{name}": leaf for name, leaf in self.maker.named_parameters()}
