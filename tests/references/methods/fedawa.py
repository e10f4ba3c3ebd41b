"""FedAWA: Shi et al., CVPR 2025.

λ = softmax(s) over the clients of a round; steps of Adam by s on Σ λ_k (‖τ_k − Σ_j λ_jτ_j‖ + 1 − cos(y_k, x))
with τ_k = y_k − x; then x ← Σ λ_k y_k. s begins at log(n_k/n), and every client keeps its own.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, flat_parameters


class Reference(FedAvg):
    cases = (
        Case({"server_steps": 3, "server_lr": 0.05}),
        Case(
            {"server_steps": 2, "server_lr": 0.2, "weighting": "uniform"},
            model="norm",
            optimiser="adam",
            batch_size=6,
        ),
        Case({"server_steps": 0}),
    )

    def start(self) -> None:
        self.first = [math.log(share) for share in self.weights(list(self.given.data))]
        self.s = list(self.first)

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        x = flat_parameters(self.model).detach()
        ends = [flat_parameters(y).detach() for y in trained.values()]
        s = torch.tensor([self.s[client] for client in trained], requires_grad=True)
        optimiser = torch.optim.Adam([s], self.settings["server_lr"], betas=(0.5, 0.999))
        for _ in range(self.settings["server_steps"]):
            lam = s.softmax(dim=0)
            tau = sum((w * (y - x) for w, y in zip(lam, ends, strict=True)), torch.zeros_like(x))
            cost = torch.zeros(())
            for w, y in zip(lam, ends, strict=True):
                cost = cost + w * ((y - x - tau).square().sum().sqrt() + 1 - F.cosine_similarity(y, x, dim=0))
            optimiser.zero_grad()
            cost.backward()
            optimiser.step()
        for client, logit in zip(trained, s.tolist(), strict=True):
            self.s[client] = logit
        average_into(self.model, list(trained.values()), s.detach().softmax(dim=0).tolist())

    def server_state(self) -> dict[str, Tensor]:
        return {"moved": torch.tensor(self.s) - torch.tensor(self.first)}
