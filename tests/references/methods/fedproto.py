"""FedProto: Tan et al., AAAI 2022, Algorithm 1: only prototypes travel, every client keeps its own model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.methods.fedproto_avg import Reference as WithAveragedWeights
from tests.references.plain import Case, evaluated, named_state
from tests.references.prototypes import class_means, features, nearest


class Reference(WithAveragedWeights):
    cases = (
        Case(),
        Case({"prototype_weighting": "weighted_mean", "distance": "cosine"}),
        Case({"normalize_prototypes": True, "prediction": "classifier"}, optimiser="adam"),
        Case({"pull": "prototypes", "squared": False}, participation=1.0),
        Case({"projector": 5, "lam": 3.0}),
        Case({"projector": 5, "freeze_backbone": True, "prediction": "classifier"}, optimiser="adam"),
    )

    def start(self) -> None:
        self.prototypes: dict[int, Tensor] = {}
        self.uploads: list[dict[int, tuple[Tensor, int]]] = []
        self.own = {client: self.network(self.given.client_start) for client in self.given.data}
        self.exact_scores = self.settings["prediction"] == "classifier"

    def client_round(self, client: int, number: int) -> Any:
        model = self.own[client]
        self.train(model, client, number)
        normalised = self.settings["normalize_prototypes"]
        self.uploads.append(class_means(model, *self.given.data[client], normalised=normalised))
        return model

    def global_model(self) -> None:
        return None

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        if self.settings["prediction"] == "classifier":
            return evaluated(self.own[client], x)
        with torch.no_grad():
            z = features(self.own[client], x)
        return nearest(z, self.prototypes, self.given.classes, self.settings)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_state(self.own[client], "model")
