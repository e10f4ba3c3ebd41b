"""FedSVD: Lee et al., NeurIPS 2025: B is trained, and B̄ A = U S Vᵀ becomes B = U S and A = Vᵀ."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.lora import RANK
from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case(model="vit", tolerance=1e-7),
        Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7),
    )

    def start(self) -> None:
        for _, layer in self.model.adapted():
            layer.lora_A.requires_grad_(False)

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        with torch.no_grad():
            for _, layer in self.model.adapted():
                a, b = layer.lora_A["shared"].weight, layer.lora_B["shared"].weight
                u, sizes, v = torch.linalg.svd(b @ a, full_matrices=False)
                for row in range(RANK):
                    sign = u[u[:, row].abs().argmax(), row].sign()
                    a[row] = sign * v[row]
                    b[:, row] = sign * sizes[row] * u[:, row]

    def server_state(self) -> dict[str, Tensor]:
        leaves = self.model.named_parameters()
        return {f"frozen.{name}": leaf for name, leaf in leaves if ".lora_A." in name}
