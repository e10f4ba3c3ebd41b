"""FedFA: Zhou and Konukoglu, ICLR 2023, on vectors z between encoder and classifier.

With probability p a step trains on z + ε ⊙ √((γ + 1) Σ²), Σ² the variance (1/n) of z over the batch, without
gradient. Server: with v the variance (1/n) per channel of the clients' means of z,
s = v / (1 + v) and γ = D s / Σ s.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"probability": 0.6}), Case({"probability": 1.0}, optimiser="adam"))

    def start(self) -> None:
        self.gamma = torch.zeros_like(self.model.encoder(self.given.data[0][0][:1])[0]).detach()

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.encoder(x)
        if self.given.noise(client, number, step, "uniform", (1,)) < self.settings["probability"]:
            variance = z.detach().var(dim=0, unbiased=False)
            noise = self.given.noise(client, number, step, "normal", z.shape, stream=1)
            z = z + noise * ((self.gamma + 1) * variance).sqrt()
        return F.cross_entropy(model.classifier(model.projector(z)), y)

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        with torch.no_grad():
            means = [y.encoder(self.given.data[client][0]).mean(dim=0) for client, y in trained.items()]
        variance = torch.stack(means).var(dim=0, unbiased=False)
        differing = variance / (1 + variance)
        self.gamma = len(differing) * differing / differing.sum()
        super().aggregate(trained, number)

    def server_state(self) -> dict[str, Tensor]:
        return {"gamma": self.gamma}
