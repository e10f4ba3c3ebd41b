"""FedExP: Jhunjhunwala, Wang and Joshi, ICLR 2023, Algorithm 1.

Δ_k = x − y_k, η_g = max(1, Σ w_k ‖Δ_k‖² / (2 (‖Δ̄‖² + ε))), x ← x − η_g Δ̄; the mean of the last two
iterates predicts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, mean_of, set_parameters


class Reference(FedAvg):
    cases = (
        Case({"epsilon": 0.01}),
        Case({"weighting": "uniform", "average_last_two": False, "epsilon": 1e-3}, optimiser="plain"),
    )

    def start(self) -> None:
        self.before = self.given.network()

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        x = flat_parameters(self.model).detach()
        set_parameters(self.before, x)
        changes = [x - flat_parameters(y).detach() for y in trained.values()]
        weights = self.weights(list(trained))
        mean = sum((w * change for w, change in zip(weights, changes, strict=True)), torch.zeros_like(x))
        spread = sum(w * change.square().sum() for w, change in zip(weights, changes, strict=True))
        rate = max(1.0, float(spread / (2 * (mean.square().sum() + self.settings["epsilon"]))))
        set_parameters(self.model, x - rate * mean)

    def predict(self, x: Tensor) -> Tensor:
        if not self.settings["average_last_two"]:
            return evaluated(self.model, x)
        return evaluated(mean_of([self.model, self.before], [0.5, 0.5]), x)
