"""FedTGP: Zhang et al., AAAI 2024: only prototypes travel, every client keeps its own model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.methods.fedtgp_avg import Reference as WithAveragedWeights
from tests.references.plain import Case, evaluated, named_state
from tests.references.prototypes import class_means, nearest


class Reference(WithAveragedWeights):
    cases = (
        Case({"lam": 2.0, "server_epochs": 4, "server_batch": 3, "server_lr": 0.1}),
        Case({"lam": 2.0, "server_epochs": 2, "margin": 0.3, "prediction": "classifier"}, optimiser="adam"),
    )

    def start(self) -> None:
        super().start()
        self.own = {client: self.given.network() for client in self.given.data}
        self.exact_scores = self.settings["prediction"] == "classifier"

    def client_round(self, client: int, number: int) -> Any:
        self.train(self.own[client], client, number)
        self.uploads.append(class_means(self.own[client], *self.given.data[client]))
        return self.own[client]

    def global_model(self) -> None:
        return None

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        if self.exact_scores:
            return evaluated(self.own[client], x)
        with torch.no_grad():
            z = self.own[client].encoder(x)
        plain = {"normalize_prototypes": False, "distance": "euclidean"}
        return nearest(z, self.prototypes, self.given.classes, plain)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_state(self.own[client], "model")
