"""FedLSA: Fu et al., AAAI 2025.

h = nor(φ(z)), the classifier ϕ works on h. Anchors A = nor(Θ(R)) are trained by the server with Adam on
CE(ϕ(a_i), i) + α · mean_i log[ Σ_{j≠i} exp(a_i·a_j/τ) / (C − 1) ] while ϕ is frozen: before round 1 and after
every average. Client: CE(ϕ(h), y) + λ CE(h·Aᵀ/τ, y).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class AnchorMaker(nn.Module):
    """R and the two-layer perceptron Θ."""

    def __init__(self, start: Any) -> None:
        super().__init__()
        for name in ("R", "W1", "b1", "W2", "b2"):
            setattr(self, name, nn.Parameter(start[f"anchor_maker.{name}"].clone()))

    def forward(self) -> Tensor:
        hidden = F.relu(self.R @ self.W1.T + self.b1)
        return F.normalize(hidden @ self.W2.T + self.b2, dim=1)


class Reference(FedAvg):
    cases = (
        Case({"server_steps": 5, "server_lr": 0.05}),
        Case({"server_steps": 3, "compactness": False, "server_lr": 0.05}),
        Case({"server_steps": 3, "separation": False, "lam": 0.3, "server_lr": 0.05}, optimiser="adam"),
    )

    def start(self) -> None:
        self.maker = AnchorMaker(self.given.server_start)
        self.train_anchors()

    def train_anchors(self) -> None:
        optimiser = torch.optim.Adam(self.maker.parameters(), self.settings["server_lr"])
        tau, classes = self.settings["tau"], self.given.classes
        for _ in range(self.settings["server_steps"]):
            anchors = self.maker()
            loss = F.cross_entropy(self.model.classifier(anchors), torch.arange(classes))
            if self.settings["separation"]:
                apart = [
                    sum((anchors[i] @ anchors[j] / tau).exp() for j in range(classes) if j != i)
                    / (classes - 1)
                    for i in range(classes)
                ]
                loss = loss + self.settings["alpha"] * torch.stack(apart).log().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        self.anchors = self.maker().detach()

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        h = F.normalize(model.embed(x), dim=1)
        plain = F.cross_entropy(model.classifier(h), y)
        if self.settings["compactness"]:
            term = F.cross_entropy(h @ self.anchors.T / self.settings["tau"], y)
        else:
            term = (h - self.anchors[y]).square().sum(dim=1).mean()
        return plain + self.settings["lam"] * term

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        self.train_anchors()

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.model.classifier(F.normalize(self.model.embed(x), dim=1))

    def server_state(self) -> dict[str, Tensor]:
        return {"anchors": self.anchors}
