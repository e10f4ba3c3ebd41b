"""FedPFT: Beitollahi et al., 2024: Gaussian mixtures per client and class, a classifier trained on draws."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg
from tests.references.virtual import train_classifier

SIZES = {"components": 2, "em_steps": 3, "server_steps": 5, "server_batch": 13, "server_lr": 0.02}


class Reference(FedAvg):
    cases = (
        Case({**SIZES, "variance_floor": 0.01}, model="head", dtype=torch.float32, tolerance=1e-5),
        Case(
            {**SIZES, "variance_floor": 0.05, "covariance": "spherical"},
            model="head",
            dtype=torch.float32,
            tolerance=1e-5,
        ),
    )

    def start(self) -> None:
        zs, ys = [], []
        for client, (x, y) in self.given.data.items():
            for label in y.unique().tolist():
                own = x[y == label]
                if len(own) < self.settings["min_class_count"]:
                    continue
                weights, means, variances = (part.to(x) for part in self.mixture(own.double(), label))
                draw = self.given.generator("virtual", client, label)
                which = torch.multinomial(weights, len(own), replacement=True, generator=draw)
                noise = torch.randn(len(own), x.shape[1], generator=draw)
                zs.append(means[which] + noise * variances[which].sqrt())
                ys += [label] * len(own)
        draw = self.given.generator("virtual order")
        train_classifier(self.model.classifier, torch.cat(zs), torch.tensor(ys), self.settings, draw)

    def mixture(self, x: Tensor, label: int) -> tuple[Tensor, Tensor, Tensor]:
        """Weights, means and variances; fewer components where one stands for less than two samples."""
        count = min(self.settings["components"], len(x) // 2)
        while True:
            shares = self.first_shares(x, count, label)
            parts = self.maximised(x, shares)
            for _ in range(self.settings["em_steps"]):
                shares = self.expected(x, *parts)
                parts = self.maximised(x, shares)
            if count == 1 or bool((shares.sum(dim=0) >= 2).all()):
                return parts
            count -= 1

    def first_shares(self, x: Tensor, count: int, label: int) -> Tensor:
        """Every sample belongs to the nearest of some random samples."""
        if count == 1:
            return torch.ones(len(x), 1, dtype=x.dtype)
        draw = self.given.generator("mixture", label)
        centres = x[torch.randperm(len(x), generator=draw)[:count]]
        nearest = torch.cdist(x, centres).argmin(dim=1)
        return torch.nn.functional.one_hot(nearest, count).to(x)

    def maximised(self, x: Tensor, shares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        counts = shares.sum(dim=0)
        means = shares.T @ x / counts[:, None]
        away = (x[:, None] - means[None]).square()
        variances = (shares[:, :, None] * away).sum(dim=0) / counts[:, None]
        if self.settings["covariance"] == "spherical":
            variances = variances.mean(dim=1, keepdim=True).expand_as(variances)
        return counts / len(x), means, variances + self.settings["variance_floor"]

    def expected(self, x: Tensor, weights: Tensor, means: Tensor, variances: Tensor) -> Tensor:
        gaussians = torch.distributions.Normal(means, variances.sqrt())
        return (weights.log() + gaussians.log_prob(x[:, None]).sum(dim=2)).softmax(dim=1)

    def server_round(self, number: int) -> None:
        pass
