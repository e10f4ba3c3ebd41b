"""pFedMe: Dinh et al., NeurIPS 2020, Algorithm 1 with β = 1.

θ = w = what was sent. Per batch: K steps θ ← θ − η_p (∇f(θ) + λ (θ − w)), then w ← w − η λ (w − θ). w is
averaged, θ stays.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, set_parameters


class Reference(FedAvg):
    cases = (
        Case({"lam": 5.0, "outer_lr": 0.02, "inner_steps": 3}),
        Case({"weighting": "uniform", "inner_steps": 2}),
    )

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}

    def client_round(self, client: int, number: int) -> nn.Module:
        s = self.settings
        model = copy.deepcopy(self.model)
        w = flat_parameters(model).detach()
        theta = w.clone()
        for x, y in self.given.batches(client, number):
            for _ in range(s["inner_steps"]):
                set_parameters(model, theta)
                parts = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
                gradient = torch.cat([part.reshape(-1) for part in parts])
                theta = theta - s["personal_lr"] * (gradient + s["lam"] * (theta - w))
            w = w - s["outer_lr"] * s["lam"] * (w - theta)
        set_parameters(self.own[client], theta)
        set_parameters(model, w)
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.own[client], x)
