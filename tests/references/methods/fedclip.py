"""FedCLIP: Lu et al., 2023: FedAvg of the adapter of `tests/references/clip.py`, by Adam with rate 5e-5."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg

RATE = {"name": "adam", "lr": 0.01, "weight_decay": 0.2}


class Reference(FedAvg):
    cases = (
        Case(model="adapter"),
        Case({"optimiser": RATE, "weighting": "uniform"}, model="adapter"),
        Case({"optimiser": RATE, "loss": "contrastive"}, model="adapter"),
    )

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        if self.settings.get("loss") != "contrastive":
            return super().loss(model, x, y, client, number, step)
        logits = model(x)[:, y]  # every image against the texts of all images' classes
        right = torch.arange(len(y))
        return (F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2

    def start(self) -> None:
        if self.settings["optimiser"]["lr"] != RATE["lr"]:
            used = self.given.optimiser_settings
            assert (used["name"], used["lr"], used["weight_decay"]) == ("adam", 5e-5, 0.2), (
                "the paper's values"
            )
