"""FedDPA-T: Yang et al., NeurIPS 2024.

A client's own layer is W x + (1 − λ) s B_g A_g x + λ s B_p A_p x. First A_p and B_p are trained with
everything else as sent, then the global branch and the head without the private branch, with the same
batches.
"""

from __future__ import annotations

import copy
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated


class Reference(FedAvg):
    cases = (
        Case({"mixing": 0.4}, model="vit"),
        Case({"mixing": 0.7, "weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7),
    )

    def start(self) -> None:
        self.own = {
            client: {name: leaf.clone() for name, leaf in self.given.client_start.items()}
            for client in self.given.data
        }

    def connect(self, model: Any, private: dict[str, Tensor]) -> None:
        for name, layer in model.adapted():
            a, b = (next(private[key] for key in private if f"{name}.lora_{part}." in key) for part in "AB")
            layer.shared_gate = 1 - self.settings["mixing"]
            layer.private = (a, b, self.settings["mixing"])

    def client_round(self, client: int, number: int) -> Any:
        private = {name: leaf.clone().requires_grad_() for name, leaf in self.own[client].items()}
        mixed = copy.deepcopy(self.model).requires_grad_(False)
        self.connect(mixed, private)
        optimiser = self.given.optimiser(list(private.values()))
        for x, y in self.given.batches(client, number):
            self.given.step(optimiser, F.cross_entropy(mixed(x), y))
        self.own[client] = {name: leaf.detach() for name, leaf in private.items()}
        return super().client_round(client, number)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = copy.deepcopy(self.model)
        self.connect(model, self.own[client])
        return evaluated(model, x)

    def private_state(self, client: int) -> dict[str, Tensor]:
        return self.own[client]
