"""FedPFT: Beitollahi et al., 2024: Gaussian mixtures per client and class, a classifier trained on draws."""

from __future__ import annotations

import torch
from scipy.linalg import sqrtm
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
        Case(
            {**SIZES, "variance_floor": 0.05, "covariance": "full", "samples_per_class": 7},
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
                weights, means, spreads = (part.to(x) for part in self.mixture(own.double(), label))
                draw = self.given.generator("virtual", client, label)
                count = self.settings["samples_per_class"] or len(own)
                which = torch.multinomial(weights, count, replacement=True, generator=draw)
                noise = torch.randn(count, x.shape[1], generator=draw)
                zs.append(means[which] + self.spread(noise, spreads[which]))
                ys += [label] * count
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
        if self.settings["covariance"] == "full":
            floor = self.settings["variance_floor"] * torch.eye(x.shape[1]).to(x)
            covariances = [x.T.cov(correction=0, aweights=share) + floor for share in shares.T]
            return counts / len(x), means, torch.stack(covariances)
        away = (x[:, None] - means[None]).square()
        variances = (shares[:, :, None] * away).sum(dim=0) / counts[:, None]
        if self.settings["covariance"] == "spherical":
            variances = variances.mean(dim=1, keepdim=True).expand_as(variances)
        return counts / len(x), means, variances + self.settings["variance_floor"]

    def expected(self, x: Tensor, weights: Tensor, means: Tensor, spreads: Tensor) -> Tensor:
        if self.settings["covariance"] == "full":
            densities = torch.distributions.MultivariateNormal(means, spreads).log_prob(x[:, None])
        else:
            densities = torch.distributions.Normal(means, spreads.sqrt()).log_prob(x[:, None]).sum(dim=2)
        return (weights.log() + densities).softmax(dim=1)

    def spread(self, noise: Tensor, spreads: Tensor) -> Tensor:
        """Deviations of these variances, or of these covariances by way of their symmetric roots."""
        if self.settings["covariance"] != "full":
            return noise * spreads.sqrt()
        roots = [torch.from_numpy(sqrtm(spread.double().numpy()).real) for spread in spreads]
        return torch.stack([root.to(row) @ row for root, row in zip(roots, noise, strict=True)])

    def server_round(self, number: int) -> None:
        pass
