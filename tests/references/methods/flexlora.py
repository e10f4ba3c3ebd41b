"""FlexLoRA: Bai et al., NeurIPS 2024: the mean of the products B A, cut to every client's rank by its SVD."""

from __future__ import annotations

import copy
from typing import Any

import torch

from tests.references.lora import RANK
from tests.references.plain import Case, FedAvg, average_into


class Reference(FedAvg):
    cases = (
        Case(model="vit", tolerance=1e-7),
        Case({"ranks": (1, 2, 2), "weighting": "uniform"}, model="vit", optimiser="plain", tolerance=1e-7),
    )

    def rank(self, client: int) -> int:
        ranks = self.settings["ranks"]
        return ranks[client % len(ranks)] if ranks else RANK

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        with torch.no_grad():
            for _, layer in model.adapted():
                layer.lora_A["shared"].weight[self.rank(client) :] = 0
                layer.lora_B["shared"].weight[:, self.rank(client) :] = 0
        self.train(model, client, number)
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        weights = self.weights(list(trained))
        models = list(trained.values())
        average_into(self.model.classifier, [model.classifier for model in models], weights)
        with torch.no_grad():
            for position, (_, layer) in enumerate(self.model.adapted()):
                layers = [model.adapted()[position][1] for model in models]
                product = sum(
                    w * each.lora_B["shared"].weight @ each.lora_A["shared"].weight
                    for w, each in zip(weights, layers, strict=True)
                )
                u, sizes, v = torch.linalg.svd(product, full_matrices=False)
                for column in range(RANK):
                    sign = u[u[:, column].abs().argmax(), column].sign()
                    layer.lora_B["shared"].weight[:, column] = sign * u[:, column] * sizes[column]
                    layer.lora_A["shared"].weight[column] = sign * v[column]
