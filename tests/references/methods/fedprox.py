"""FedProx: Li et al., MLSys 2020, Eq. 2: cross-entropy + μ/2 ‖y − x‖²."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tests.references.plain import Case, FedAvg, flat_parameters


class Reference(FedAvg):
    cases = (Case({"mu": 0.4}), Case({"mu": 0.4, "weighting": "uniform"}, optimiser="adam"))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        away = flat_parameters(model) - flat_parameters(self.model).detach()
        plain = super().loss(model, x, y, client, number, step)
        return plain + self.settings["mu"] / 2 * away.square().sum()
