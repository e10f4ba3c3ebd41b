"""FedSDG: a shared and a private LoRA branch per layer, gates, and a server that weights by agreement.

Layer: W x + s B_g A_g x + m s B_p A_p x, m = σ(a). Client: CE + λ₁ Σ|m| + λ₂ P(θ_p), with a learning rate
each for θ_g (LoRA and head), θ_p and a. Server: see `aligned`. Only θ_g travels; the global model has no
private branch.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, evaluated, flat_parameters, trained_parameters
from tests.references.wrappers.aligned import alignment_weights

SIZES = {"lam1": 0.05, "lam2": 0.02, "private_lr": 0.02, "gate_lr": 0.05}


class Reference(FedAvg):
    cases = (
        Case({**SIZES, "private_init_std": 0.1}, model="vit", optimiser="clipped adam", tolerance=1e-7),
        Case(
            {**SIZES, "granularity": "layer", "gate_penalty": "bilateral", "private_penalty": "product"},
            model="vit",
            optimiser="clipped adam",
            tolerance=1e-7,
        ),
        Case({**SIZES, "granularity": "global", "alignment": None}, model="vit", optimiser="clipped"),
    )

    def start(self) -> None:
        self.own = {
            client: {name: leaf.clone() for name, leaf in self.given.client_start.items()}
            for client in self.given.data
        }

    def connect(self, model: Any, private: dict[str, Tensor]) -> Tensor:
        """Put the private branches into the model; returns the gates m."""
        gates = torch.sigmoid(private["gates"])
        for position, (name, layer) in enumerate(model.adapted()):
            which = {"block": position // 2, "layer": position, "global": 0}[self.settings["granularity"]]
            a, b = private[f"private.{name}.private_a"], private[f"private.{name}.private_b"]
            layer.private = (a, b, gates.reshape(-1)[which])
        return gates

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        private = {name: leaf.clone().requires_grad_() for name, leaf in self.own[client].items()}
        branches = [leaf for name, leaf in private.items() if name != "gates"]
        optimiser = self.given.optimiser(
            [
                {"params": trained_parameters(model)},
                {"params": branches, "lr": self.settings["private_lr"]},
                {"params": [private["gates"]], "lr": self.settings["gate_lr"]},
            ]
        )
        for x, y in self.given.batches(client, number):
            gates = self.connect(model, private)
            bilateral = self.settings["gate_penalty"] == "bilateral"
            on_gates = (torch.minimum(gates, 1 - gates) if bilateral else gates.abs()).sum()
            if self.settings["private_penalty"] == "factors":
                on_branches = sum(leaf.square().sum() for leaf in branches)
            else:
                pairs = [layer.private for _, layer in model.adapted()]
                on_branches = sum((b @ a).square().sum() for a, b, _ in pairs)
            loss = F.cross_entropy(model(x), y)
            loss = loss + self.settings["lam1"] * on_gates + self.settings["lam2"] * on_branches
            self.given.step(optimiser, loss)
        self.own[client] = {name: leaf.detach() for name, leaf in private.items()}
        for _, layer in model.adapted():
            layer.private = None
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        if self.settings["alignment"] is None:
            return super().aggregate(trained, number)
        x = flat_parameters(self.model).detach()
        updates = [flat_parameters(y).detach() - x for y in trained.values()]
        sizes = [self.given.size(client) for client in trained]
        weights = alignment_weights(updates, sizes, self.settings["alignment"])
        return average_into(self.model, list(trained.values()), weights)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = copy.deepcopy(self.model)
        self.connect(model, self.own[client])
        return evaluated(model, x)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return self.own[client]
