"""Agnostic FL: Mohri, Sivek and Suresh, ICML 2019.

x ← Σ λ_k y_k and λ ← projection of λ + γF(x) onto the simplex, both from the same x and λ; the mean of all x
predicts. The projection subtracts the number, found by bisection, that leaves a sum of 1.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, evaluated, mean_of, named_state


class Reference(FedAvg):
    cases = (
        Case({"step": 0.1}),
        Case({"step": 2.0, "prediction": "last"}, optimiser="plain"),  # so that some λ are 0
    )

    def start(self) -> None:
        self.lam = [1 / self.given.clients] * self.given.clients
        self.all_models: list[Any] = []
        self.mean = self.given.network()

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        raised = list(self.lam)
        for client in trained:
            x, y = self.given.data[client]
            raised[client] += self.settings["step"] * float(F.cross_entropy(evaluated(self.model, x), y))
        parts = [self.lam[client] for client in trained]
        if sum(parts) == 0:
            parts = [1.0] * len(parts)
        average_into(self.model, list(trained.values()), [part / sum(parts) for part in parts])
        self.lam = projected(raised)
        self.all_models.append(copy.deepcopy(self.model))
        self.mean = mean_of(self.all_models, [1 / number] * number)

    def predict(self, x: Tensor) -> Tensor:
        return evaluated(self.mean if self.settings["prediction"] == "averaged" else self.model, x)

    def server_state(self) -> dict[str, Tensor]:
        kept = {"shares": torch.tensor(self.lam), "rounds": torch.tensor(len(self.all_models))}
        return {**kept, **named_state(self.mean, "mean")}


def projected(point: list[float]) -> list[float]:
    low, high = min(point) - 1, max(point)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(each - middle, 0) for each in point) > 1:
            low = middle
        else:
            high = middle
    return [max(each - high, 0) for each in point]
