"""FedRoD: Chen and Chao, ICLR 2022, with linear personal heads.

CE(G(z) + γ log n, y) + CE(sg[G(z)] + P(sg[z]), y), n_c the client's samples of class c; P is zero at the
start and stays.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"gamma": 0.7}), Case({"weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.heads = {}
        for client in self.given.data:
            head = copy.deepcopy(self.model.classifier)
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)
            self.heads[client] = head

    def client_round(self, client: int, number: int) -> Any:
        model, head = copy.deepcopy(self.model), self.heads[client]
        counts = torch.bincount(self.given.data[client][1], minlength=self.given.classes)
        prior = self.settings["gamma"] * counts.to(torch.get_default_dtype()).clamp(min=1e-6).log()
        optimiser = self.given.optimiser([*model.parameters(), *head.parameters()])
        for x, y in self.given.batches(client, number):
            z = model.embed(x)
            shared = model.classifier(z)
            own = shared.detach() + head(z.detach())
            self.given.step(optimiser, F.cross_entropy(shared + prior, y) + F.cross_entropy(own, y))
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        with torch.no_grad():
            z = self.model.embed(x)
            return self.model.classifier(z) + self.heads[client](z)
