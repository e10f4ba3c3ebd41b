"""FedBN: Li et al., ICLR 2021, Algorithm 1: batch norm's weights and statistics stay with the client."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated


class Reference(FedAvg):
    cases = (
        Case(model="norm", batch_size=6),
        Case({"weighting": "uniform"}, model="norm", optimiser="adam", batch_size=6),
    )

    def start(self) -> None:
        self.own = {client: self.norms(self.model) for client in self.given.data}

    def norms(self, model: nn.Module) -> list[dict[str, Tensor]]:
        return [copy.deepcopy(layer.state_dict()) for layer in self.layers(model)]

    def layers(self, model: nn.Module) -> list[nn.Module]:
        return [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm1d)]

    def assembled(self, client: int) -> nn.Module:
        model = copy.deepcopy(self.model)
        for layer, state in zip(self.layers(model), self.own[client], strict=True):
            layer.load_state_dict(state)
        return model

    def client_round(self, client: int, number: int) -> Any:
        model = self.assembled(client)
        self.train(model, client, number)
        self.own[client] = self.norms(model)
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.assembled(client), x)
