"""FedDecorr: Shi et al., ICLR 2023, Eq. 6: CE + β/d² ‖K‖², K the correlations of z within the batch."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"beta": 0.5}), Case(optimiser="adam"))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.embed(x)
        scaled = (z - z.mean(dim=0)) / (z.var(dim=0, unbiased=False) + 1e-8).sqrt()
        correlations = scaled.T @ scaled / len(z)
        penalty = correlations.square().sum() / z.shape[1] ** 2
        return F.cross_entropy(model.classifier(z), y) + self.settings["beta"] * penalty
