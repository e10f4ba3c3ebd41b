"""q-FedAvg: Li et al., ICLR 2020, Algorithm 2.

Δw_k = L(x − y_k), Δ_k = F_k^q Δw_k, h_k = q F_k^{q−1}‖Δw_k‖² + L F_k^q, x ← x − Σ w_kΔ_k / Σ w_kh_k, with
the loss F_k of x on all of client k's samples, and L = 1/η.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, set_parameters


class Reference(FedAvg):
    cases = (
        Case({"q": 2.0}),
        Case({"q": 0.5, "lipschitz": 3.0, "weighting": "uniform"}, optimiser="adam"),
        Case({"q": 1.0}, model="norm", optimiser="plain", batch_size=6),
    )

    def start(self) -> None:
        self.step_size = 1.0

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        lipschitz = self.settings["lipschitz"] or 1 / self.given.optimiser_settings["lr"]
        x, q = flat_parameters(self.model).detach().clone(), self.settings["q"]
        losses = {client: self.loss_of_server(client) for client in trained}
        super().aggregate(trained, number)  # for the statistics of batch norm
        up, down, plain = torch.zeros_like(x), 0.0, 0.0
        for w, (client, y) in zip(self.weights(list(trained)), trained.items(), strict=True):
            gradient = lipschitz * (x - flat_parameters(y).detach())
            loss = losses[client] + 1e-10
            h = q * loss ** (q - 1) * float(gradient @ gradient) + lipschitz * loss**q
            up, down = up + w * loss**q * gradient, down + w * h
            plain += w * lipschitz * loss**q
        set_parameters(self.model, x - up / down)
        self.step_size = plain / down

    def loss_of_server(self, client: int) -> float:
        x, y = self.given.data[client]
        return float(F.cross_entropy(evaluated(self.model, x), y))

    def server_state(self) -> dict[str, Tensor]:
        return {"step_size": torch.tensor(self.step_size)}
