"""FedRS: Li and Zhan, KDD 2021, Eq. 6: logits of classes that a client does not have are multiplied by α."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"alpha": 0.3}), Case({"weighting": "uniform"}, optimiser="adam"))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        held = torch.isin(torch.arange(self.given.classes), self.given.data[client][1])
        return F.cross_entropy(model(x) * torch.where(held, 1.0, self.settings["alpha"]), y)
