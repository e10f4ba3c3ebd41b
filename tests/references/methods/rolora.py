"""RoLoRA: Chen et al., NeurIPS 2025: B is trained and averaged in odd rounds, A in even ones."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case(model="vit"),
        Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7),
    )

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        for _, layer in model.adapted():
            frozen = layer.lora_A if number % 2 == 1 else layer.lora_B
            frozen.requires_grad_(False)
        self.train(model, client, number)
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        self.next_frozen = ".lora_B." if number % 2 == 1 else ".lora_A."

    def server_state(self) -> dict[str, Tensor]:
        leaves = self.model.named_parameters()
        return {f"frozen.{name}": leaf for name, leaf in leaves if self.next_frozen in name}
