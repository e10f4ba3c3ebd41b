"""Ditto: Li et al., ICML 2021, Algorithm 1.

Beside FedAvg, every client takes as many steps from its own v on CE + λ/2 ‖v − w‖², w being what the server
sent.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, named_state


class Reference(FedAvg):
    cases = (Case({"lam": 0.5}), Case({"weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}

    def client_round(self, client: int, number: int) -> nn.Module:
        sent = flat_parameters(self.model).detach()
        own = self.own[client]
        optimiser = self.given.optimiser(own.parameters())
        for x, y in self.given.batches(client, number):
            pull = self.settings["lam"] / 2 * (flat_parameters(own) - sent).square().sum()
            self.given.step(optimiser, F.cross_entropy(own(x), y) + pull)
        return super().client_round(client, number)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.own[client], x)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_state(self.own[client], "model")
