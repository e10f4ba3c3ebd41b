"""FedSA-LoRA: Guo et al., ICLR 2025: A travels and is averaged; B and the head stay with the client."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated


class Reference(FedAvg):
    cases = (Case(model="vit"), Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7))

    def start(self) -> None:
        self.own = {client: self.kept(self.model) for client in self.given.data}

    def kept(self, model: Any) -> dict[str, Tensor]:
        return {
            name: leaf.detach().clone()
            for name, leaf in model.named_parameters()
            if ".lora_B." in name or name.startswith("classifier.")
        }

    def assembled(self, client: int) -> Any:
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.own[client], strict=False)
        return model

    def client_round(self, client: int, number: int) -> Any:
        model = self.assembled(client)
        self.train(model, client, number)
        self.own[client] = self.kept(model)
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.assembled(client), x)
