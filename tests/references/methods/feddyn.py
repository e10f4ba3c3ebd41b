"""FedDyn: Acar et al., ICLR 2021, Algorithm 1.

Client: f(y) − ⟨g_k, y⟩ + α/2 ‖y − x‖², then g_k ← g_k − α (y − x).
Server: h ← h − α (1/K) Σ (y − x), x ← mean(y) − h / α.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, flat_parameters, named_parts, set_parameters


class Reference(FedAvg):
    cases = (Case({"alpha": 0.3}), Case({"alpha": 0.05}, optimiser="plain"))

    def start(self) -> None:
        zero = torch.zeros_like(flat_parameters(self.model))
        self.h = zero
        self.g = dict.fromkeys(self.given.data, zero)

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        here, start = flat_parameters(model), flat_parameters(self.model).detach()
        pull = self.settings["alpha"] / 2 * (here - start).square().sum()
        return super().loss(model, x, y, client, number, step) - self.g[client] @ here + pull

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        alpha = self.settings["alpha"]
        x = flat_parameters(self.model).detach()
        ends = {client: flat_parameters(model).detach() for client, model in trained.items()}
        for client, y in ends.items():
            self.g[client] = self.g[client] - alpha * (y - x)
        self.h = self.h - alpha * sum(y - x for y in ends.values()) / self.given.clients
        set_parameters(self.model, sum(ends.values()) / len(ends) - self.h / alpha)

    def server_state(self) -> dict[str, Tensor]:
        return named_parts(self.model, self.h, "h")

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_parts(self.model, self.g[client], "g")
