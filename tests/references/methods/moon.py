"""MOON: Li et al., CVPR 2021, Algorithm 1.

CE − μ log [e^{cos(z, z_glob)/T} / (e^{cos(z, z_glob)/T} + e^{cos(z, z_prev)/T})], z the projector's output.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"mu": 2.0, "temperature": 0.3}), Case(optimiser="adam"))

    def start(self) -> None:
        self.previous: dict[int, nn.Module] = {}

    def client_round(self, client: int, number: int) -> nn.Module:
        model = super().client_round(client, number)
        self.previous[client] = copy.deepcopy(model)
        return model

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.embed(x)
        with torch.no_grad():
            now = self.model.embed(x)
            last = self.previous.get(client, self.model).embed(x)
        temperature = self.settings["temperature"]
        near = (F.cosine_similarity(z, now) / temperature).exp()
        far = (F.cosine_similarity(z, last) / temperature).exp()
        contrast = -(near / (near + far)).log().mean()
        return F.cross_entropy(model.classifier(z), y) + self.settings["mu"] * contrast
