"""FedAvgM: Hsu et al., 2019: v ← β v + Δ, x ← x + η v with Δ = Σ w_k (y_k − x)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, flat_parameters, named_parts, set_parameters


class Reference(FedAvg):
    cases = (Case({"server_lr": 0.8, "beta": 0.7}), Case({"weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.v = torch.zeros_like(flat_parameters(self.model))

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        x = flat_parameters(self.model).detach()
        change = torch.zeros_like(x)
        for weight, y in zip(self.weights(list(trained)), trained.values(), strict=True):
            change = change + weight * (flat_parameters(y).detach() - x)
        self.v = self.settings["beta"] * self.v + change
        set_parameters(self.model, x + self.settings["server_lr"] * self.v)

    def server_state(self) -> dict[str, Tensor]:
        return named_parts(self.model, self.v, "momentum")
