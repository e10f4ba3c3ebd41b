"""Servers that step along Δ = Σ w_k (y_k − x): Reddi et al., ICLR 2021, Algorithm 2."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, flat_parameters, named_parts, set_parameters


class AdaptiveServer(FedAvg):
    """m ← β₁ m + (1 − β₁) Δ, v as the subclass says from v = τ² on, x ← x + η m / (√v + τ)."""

    cases = (
        Case({"server_lr": 0.1, "tau": 0.05, "beta1": 0.6}),
        Case({"weighting": "uniform"}, optimiser="adam"),
    )

    def start(self) -> None:
        zero = torch.zeros_like(flat_parameters(self.model))
        self.m, self.v = zero, zero + self.settings["tau"] ** 2

    def second_moment(self, squared: Tensor) -> Tensor:
        raise NotImplementedError

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        x = flat_parameters(self.model).detach()
        weights = self.weights(list(trained))
        ends = [flat_parameters(y).detach() for y in trained.values()]
        change = sum((w * (y - x) for w, y in zip(weights, ends, strict=True)), torch.zeros_like(x))
        self.m = self.settings["beta1"] * self.m + (1 - self.settings["beta1"]) * change
        self.v = self.second_moment(change**2)
        step = self.settings["server_lr"] * self.m / (self.v**0.5 + self.settings["tau"])
        set_parameters(self.model, x + step)

    def server_state(self) -> dict[str, Tensor]:
        return named_parts(self.model, self.m, "momentum") | named_parts(self.model, self.v, "second_moment")
