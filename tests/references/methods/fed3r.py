"""Fed3R: Fanì et al., ICML 2024: ridge regression of one-hot labels on (z, 1), here on all samples at once.

Columns are divided by the length of their weights without the bias. Nothing happens in the rounds.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"lam": 0.3}, model="head"),
        Case({"random_features": 5, "bandwidth": 2.0, "normalise": False}, model="head"),
    )

    def start(self) -> None:
        x = torch.cat([x for x, _ in self.given.data.values()])
        y = torch.cat([y for _, y in self.given.data.values()])
        z = self.features(x)
        ridge = self.settings["lam"] * torch.eye(z.shape[1])
        self.w = torch.linalg.solve(z.T @ z + ridge, z.T @ F.one_hot(y, self.given.classes).to(z))
        if self.settings["normalise"]:
            self.w = self.w / self.w[:-1].norm(dim=0)

    def features(self, x: Tensor) -> Tensor:
        """The embeddings, or random features of them, and a 1."""
        count = self.settings["random_features"]
        if count:
            draw = self.given.generator("random features")
            omega = torch.randn(x.shape[1], count, generator=draw)
            shift = 2 * math.pi * torch.rand(count, generator=draw)
            x = math.sqrt(2 / count) * (x @ omega / self.settings["bandwidth"] + shift).cos()
        return torch.cat([x, torch.ones(len(x), 1)], dim=1)

    def server_round(self, number: int) -> None:
        pass

    def global_model(self) -> None:
        return None

    def predict(self, x: Tensor) -> Tensor:
        return self.features(x) @ self.w
