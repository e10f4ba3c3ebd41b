"""FedLSA: Fu et al., AAAI 2025.

h = nor(φ(z)), the classifier ϕ works on h. Anchors A = nor(Θ(R)) are trained by the server with Adam on
CE(ϕ(a_i), i) + α · mean_i log[ Σ_{j≠i} exp(a_i·a_j/τ) / (C − 1) ] while ϕ is frozen: before round 1 and after
every average. Client: CE(ϕ(h), y) + λ CE(h·Aᵀ/τ, y).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, named_state


class AnchorMaker(nn.Module):
    """R and the two-layer perceptron Θ."""

    R: nn.Parameter
    W1: nn.Parameter
    b1: nn.Parameter
    W2: nn.Parameter
    b2: nn.Parameter

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
        Case({"server_steps": 3, "anchor_optimiser": "sgd", "use_projector": False, "server_lr": 0.1}),
        Case({"server_steps": 3, "share_projector": False, "server_lr": 0.05}),
    )

    def embedded(self, model: Any, x: Tensor) -> Tensor:
        """h: on the sphere behind the projector, or before it."""
        inside = self.settings.get("use_projector", True)
        return F.normalize(model.embed(x) if inside else model.encoder(x), dim=1)

    def classified(self, model: Any, h: Tensor) -> Tensor:
        logits: Tensor = model.classifier(
            h if self.settings.get("use_projector", True) else model.projector(h)
        )
        return logits

    def start(self) -> None:
        self.maker = AnchorMaker(self.given.server_start)
        shared = self.settings.get("share_projector", True)
        networks = {} if shared else {client: self.given.network() for client in self.given.data}
        self.own_projectors = {client: network.projector for client, network in networks.items()}
        self.train_anchors()

    def train_anchors(self) -> None:
        kind = torch.optim.SGD if self.settings.get("anchor_optimiser") == "sgd" else torch.optim.Adam
        optimiser = kind(self.maker.parameters(), self.settings["server_lr"])
        tau, classes = self.settings["tau"], self.given.classes
        for _ in range(self.settings["server_steps"]):
            anchors = self.maker()
            loss = F.cross_entropy(self.classified(self.model, anchors), torch.arange(classes))
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
        h = self.embedded(model, x)
        plain = F.cross_entropy(self.classified(model, h), y)
        if self.settings["compactness"]:
            term = F.cross_entropy(h @ self.anchors.T / self.settings["tau"], y)
        else:
            term = (h - self.anchors[y]).square().sum(dim=1).mean()
        return plain + self.settings["lam"] * term

    def client_round(self, client: int, number: int) -> Any:
        model = self.as_seen_by(client)
        self.train(model, client, number)
        if client in self.own_projectors:
            self.own_projectors[client] = model.projector
        return model

    def as_seen_by(self, client: int) -> Any:
        """The server's model, with the client's own projector if it has one."""
        model = copy.deepcopy(self.model)
        if client in self.own_projectors:
            model.projector = copy.deepcopy(self.own_projectors[client])
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        if self.own_projectors:  # which are not sent, so the server's stays as it was
            for model in trained.values():
                model.projector = self.model.projector
        super().aggregate(trained, number)
        self.train_anchors()

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.classified(self.model, self.embedded(self.model, x))

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = self.as_seen_by(client)
        with torch.no_grad():
            return self.classified(model, self.embedded(model, x))

    def server_state(self) -> dict[str, Tensor]:
        return {"anchors": self.anchors}

    def private_state(self, client: int) -> dict[str, Tensor]:
        if client not in self.own_projectors:
            return {}
        return named_state(self.own_projectors[client], "projector.projector")
