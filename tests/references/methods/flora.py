"""FLoRA: Wang et al., NeurIPS 2024: stacked branches go into W, and every round begins with new ones."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from tests.references.lora import ALPHA, RANK
from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case(model="vit"),
        Case({"ranks": (1, 2, 2), "weighting": "uniform"}, model="vit", optimiser="plain"),
    )

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        ranks = self.settings["ranks"]
        rank = ranks[client % len(ranks)] if ranks else RANK
        with torch.no_grad():
            for _, layer in model.adapted():
                layer.lora_A["shared"].weight[rank:] = 0
        self.train(model, client, number)
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        weights = self.weights(list(trained))
        self.restarts = number
        draw = self.given.generator("adapters", number)
        with torch.no_grad():
            for position, (_, layer) in enumerate(self.model.adapted()):
                layers = [model.adapted()[position][1] for model in trained.values()]
                pairs = zip(weights, layers, strict=True)
                rows = torch.cat([w * each.lora_A["shared"].weight for w, each in pairs])
                columns = torch.cat([each.lora_B["shared"].weight for each in layers], dim=1)
                layer.base_layer.weight += ALPHA / RANK * columns @ rows
                a = layer.lora_A["shared"].weight
                a.copy_((2 * torch.rand(a.shape, generator=draw) - 1) / math.sqrt(a.shape[1]))
                layer.lora_B["shared"].weight.zero_()

    def server_state(self) -> dict[str, Tensor]:
        merged = {
            f"residual.{name}.base_layer.weight": layer.base_layer.weight - start.base_layer.weight
            for (name, layer), (_, start) in zip(
                self.model.adapted(), self.given.network().adapted(), strict=True
            )
        }
        return {**merged, "restarts": torch.tensor(self.restarts)}
