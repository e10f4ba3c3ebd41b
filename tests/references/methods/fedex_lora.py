"""FedEx-LoRA: Singhal et al., ACL 2025.

Factors and head are averaged, and W ← W + s (Σ w_k B_k A_k − B̄ Ā), so that the mean of the clients' layers
is exact.
"""

from __future__ import annotations

from typing import Any

import torch

from tests.references.lora import ALPHA, RANK
from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case(model="vit"), Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7))

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        weights = self.weights(list(trained))
        with torch.no_grad():
            for position, (_, layer) in enumerate(self.model.adapted()):
                layers = [model.adapted()[position][1] for model in trained.values()]
                products = sum(
                    w * each.lora_B["shared"].weight @ each.lora_A["shared"].weight
                    for w, each in zip(weights, layers, strict=True)
                )
                missed = products - layer.lora_B["shared"].weight @ layer.lora_A["shared"].weight
                layer.base_layer.weight += ALPHA / RANK * missed
