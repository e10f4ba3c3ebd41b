"""FedMix: Yoon et al., ICLR 2021.

Before round 1, every client uploads means (x̄, ȳ) of groups of M samples, and all get all of them. Per step
one of them is drawn, and with u = (1 − λ) x the loss per sample is
    (1 − λ) ℓ(f(u), y) + λ ℓ(f(u), ȳ) + λ (1 − λ) ⟨∇_u ℓ(f(u), y), x̄⟩.
NaiveMix takes (1 − λ) ℓ(f(ũ), y) + λ ℓ(f(ũ), ȳ) at ũ = (1 − λ) x + λ x̄.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"lam": 0.2, "group_size": 2}),
        Case({"lam": 0.3, "group_size": 4, "variant": "naive"}, optimiser="adam"),
        Case({"lam": 0.1, "group_size": "all"}, tolerance=1e-7),  # rounding grows
    )

    def start(self) -> None:
        self.means: list[tuple[Tensor, Tensor]] = []
        for client, (x, y) in self.given.data.items():
            size = len(y) if self.settings["group_size"] == "all" else self.settings["group_size"]
            shuffled = self.given.noise(client, 0, 0, "uniform", (len(y),)).argsort()
            for first in range(0, len(y) - size + 1, size):
                group = shuffled[first : first + size]
                labels = F.one_hot(y[group], self.given.classes).to(x)
                self.means.append((x[group].mean(dim=0), labels.mean(dim=0)))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        lam = self.settings["lam"]
        drawn = int(self.given.noise(client, number, step, "uniform", (1,)) * len(self.means))
        mean_x, mean_y = self.means[drawn]
        naive = self.settings["variant"] == "naive"
        u = ((1 - lam) * x + (lam * mean_x if naive else 0)).requires_grad_()
        logits = model(u)
        losses = F.cross_entropy(logits, y, reduction="none")
        mixed = (1 - lam) * losses + lam * -(mean_y * logits.log_softmax(dim=1)).sum(dim=1)
        if not naive:
            (gradient,) = torch.autograd.grad(losses.sum(), u, create_graph=True)
            mixed = mixed + lam * (1 - lam) * (gradient * mean_x).sum(dim=1)
        return mixed.mean()
