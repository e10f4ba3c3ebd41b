"""FedETF: Li et al., ICCV 2023: logits s · nor(h)ᵀV with a fixed simplex V and a learnt scale s, balanced
softmax.

V = √(C/(C−1)) · U (I − 11ᵀ/C), U with orthonormal columns from a QR decomposition. The cross-entropy is
that of the logits + log n_c, over the classes that the client has.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class Scale(nn.Module):
    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(start.clone())


class Reference(FedAvg):
    cases = (
        Case({"initial_scale": 4.0}, dtype=torch.float32, tolerance=1e-5),  # V is in single precision
        Case(
            {"balanced": False, "weighting": "uniform"}, "mlp", "plain", dtype=torch.float32, tolerance=1e-5
        ),
    )

    def start(self) -> None:
        classes, width = self.given.classes, self.model.classifier.in_features
        self.model.classifier.requires_grad_(False)  # it is not used
        self.model.etf = Scale(self.given.server_start["model.etf.scale"])
        numbers = self.given.common_normal("simplex", (width, classes))
        axes = torch.linalg.qr(numbers.double()).Q
        centred = torch.eye(classes).double() - 1 / classes
        self.simplex = (math.sqrt(classes / (classes - 1)) * axes @ centred).to(numbers)

    def logits(self, model: Any, x: Tensor) -> Tensor:
        return model.etf.scale * F.normalize(model.embed(x), dim=1) @ self.simplex

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        logits = self.logits(model, x)
        if self.settings["balanced"]:
            counts = torch.bincount(self.given.data[client][1], minlength=self.given.classes)
            logits = logits + counts.to(logits).log()
        return F.cross_entropy(logits, y)

    def predict(self, x: Tensor) -> Tensor:
        return self.logits(self.model, x).detach()
