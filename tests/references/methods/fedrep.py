"""FedRep: Collins et al., ICML 2021, Algorithm 1.

Client: first its own classifier, then the representation, each with the other part held still. Server: the
average of the representations. A client predicts with the server's representation and its own classifier.
"""

from __future__ import annotations

import copy
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, evaluated, named_state


class Reference(FedAvg):
    cases = (Case({"head_passes": 3}), Case({"head_passes": 1, "weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.heads = {client: self.given.network().classifier for client in self.given.data}

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        model.classifier = self.heads[client]
        body = [*model.encoder.parameters(), *model.projector.parameters()]
        for parameters, passes in (
            (list(model.classifier.parameters()), self.settings["head_passes"]),
            (body, 1),
        ):
            optimiser = self.given.optimiser(parameters)
            for _ in range(passes):
                for x, y in self.given.batches(client, number):
                    self.given.step(optimiser, F.cross_entropy(model(x), y))
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        weights = self.weights(list(trained))
        average_into(self.model.encoder, [model.encoder for model in trained.values()], weights)
        average_into(self.model.projector, [model.projector for model in trained.values()], weights)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = copy.deepcopy(self.model)
        model.classifier = self.heads[client]
        return evaluated(model, x)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_state(self.heads[client], "head.classifier")
