"""FedPer: Arivazhagan et al., 2019: the representation is shared, the classifier stays with the client."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, evaluated


class Reference(FedAvg):
    cases = (Case(), Case({"weighting": "uniform"}, optimiser="adam"))
    private: tuple[str, ...] = ("classifier",)
    shared: tuple[str, ...] = ("encoder", "projector")

    def start(self) -> None:
        self.own = {
            client: {part: getattr(self.given.network(), part) for part in self.private}
            for client in self.given.data
        }

    def assembled(self, client: int) -> Any:
        """The server's parts and the client's own."""
        model = copy.deepcopy(self.model)
        for part, module in self.own[client].items():
            setattr(model, part, module)
        return model

    def client_round(self, client: int, number: int) -> Any:
        model = self.assembled(client)
        self.train(model, client, number)
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        for part in self.shared:
            parts = [getattr(model, part) for model in trained.values()]
            average_into(getattr(self.model, part), parts, self.weights(list(trained)))

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.assembled(client), x)
