"""LoRA-FAIR: Bian et al., ICCV 2025: B̄ + ΔB, with (B̄ + ΔB) Ā close to the mean of the products.

The cosine's minimum is approached by gradient steps of length ‖B̄ Ā‖² / (3 ‖Ā‖₂²), each followed by the
proximal map of λ‖ΔB‖; the gradient is autograd's. The least squares are solved as such, with √λ I below Āᵀ.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"lam": 0.003, "server_steps": 20}, model="vit", optimiser="plain"),
        Case({"similarity": "squares", "lam": 0.2}, model="vit", optimiser="plain"),
        Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-6),
    )

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        weights = self.weights(list(trained))
        correction = self.by_cosine if self.settings["similarity"] == "cosine" else self.by_squares
        for position, (_, layer) in enumerate(self.model.adapted()):
            layers = [model.adapted()[position][1] for model in trained.values()]
            a, b = (part["shared"].weight.detach() for part in (layer.lora_A, layer.lora_B))
            products = torch.stack(
                [(each.lora_B["shared"].weight @ each.lora_A["shared"].weight).detach() for each in layers]
            )
            mean = torch.tensordot(torch.tensor(weights), products, dims=1)
            with torch.no_grad():
                layer.lora_B["shared"].weight += correction(mean, b, a)

    def by_cosine(self, mean: Tensor, b: Tensor, a: Tensor) -> Tensor:
        step = torch.linalg.norm(b @ a) ** 2 / (3 * torch.linalg.svdvals(a)[0] ** 2)
        delta = torch.zeros_like(b)
        for _ in range(self.settings["server_steps"]):
            with torch.enable_grad():
                leaf = delta.clone().requires_grad_()
                distance = 1 - F.cosine_similarity(mean.flatten(), ((b + leaf) @ a).flatten(), dim=0, eps=0)
                (gradient,) = torch.autograd.grad(distance, leaf)
            forward = delta - step * gradient
            threshold, norm = float(step * self.settings["lam"]), float(forward.norm())
            delta = forward * (1 - threshold / norm) if norm > threshold else torch.zeros_like(b)
        return delta

    def by_squares(self, mean: Tensor, b: Tensor, a: Tensor) -> Tensor:
        left = torch.cat([a.T, self.settings["lam"] ** 0.5 * torch.eye(len(a))])
        right = torch.cat([(mean - b @ a).T, torch.zeros(len(a), len(b))])
        return torch.linalg.lstsq(left, right).solution.T
