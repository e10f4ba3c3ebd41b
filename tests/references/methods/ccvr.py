"""CCVR: Luo et al., NeurIPS 2021, Algorithm 1.

Per class, the pooled mean and unbiased covariance of z give a Gaussian; the classifier is trained again on
draws from it. Where features are trained, round t calibrates the model that it sent; otherwise features are
drawn once from all clients and every round calibrates its new model.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated
from tests.references.virtual import train_classifier

SIZES = {"samples_per_class": 4, "server_steps": 5, "server_batch": 4, "server_lr": 0.02}


class Reference(FedAvg):
    cases = (
        Case(SIZES, dtype=torch.float32, tolerance=1e-5),  # moments are sent in single precision
        Case(SIZES, model="head", dtype=torch.float32, tolerance=1e-5),
        Case({**SIZES, "prediction": "averaged"}, dtype=torch.float32, tolerance=1e-5),
    )

    def start(self) -> None:
        self.calibrated = copy.deepcopy(self.model)
        self.trains_features = any(True for _ in self.model.encoder.parameters())
        if not self.trains_features:
            self.drawn = self.draws(self.model, list(self.given.data))

    def draws(self, model: Any, clients: list[int]) -> tuple[Tensor, Tensor]:
        """Features of every class that enough samples describe."""
        z, y = [], []
        for label in range(self.given.classes):
            own = [x[labels == label] for x, labels in (self.given.data[client] for client in clients)]
            told = [part for part in own if len(part) >= self.settings["min_class_count"]]
            if not told:
                continue
            with torch.no_grad():
                features = torch.cat([model.embed(part) for part in told]).double()
            values, vectors = torch.linalg.eigh(features.T.cov())
            values = torch.where(values < 1e-6 * values.max(), 0.0, values)
            root = vectors @ values.sqrt().diag() @ vectors.T
            draw = self.given.generator("virtual", label)
            noise = torch.randn(self.settings["samples_per_class"], len(values), generator=draw)
            z.append((features.mean(dim=0) + noise.double() @ root).to(noise))
            y += [label] * len(noise)
        return torch.cat(z), torch.tensor(y)

    def server_round(self, number: int) -> None:
        sent = copy.deepcopy(self.model)
        super().server_round(number)
        self.calibrated = sent if self.trains_features else copy.deepcopy(self.model)
        if self.trains_features:
            self.drawn = self.draws(sent, list(self.given.rounds[number - 1]))
        draw = self.given.generator("calibration")
        train_classifier(self.calibrated.classifier, *self.drawn, self.settings, draw)

    def predict(self, x: Tensor) -> Tensor:
        averaged = self.settings["prediction"] == "averaged"
        return evaluated(self.model if averaged else self.calibrated, x)
