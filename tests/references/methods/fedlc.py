"""FedLC: Zhang et al., ICML 2022, Eq. 8: logits are lowered by τ n_c^(−1/4), absent classes drop out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"tau": 0.8}, tolerance=1e-6),  # counts are single-precision numbers
        Case({"tau": 0.5, "sum_over": "others"}, optimiser="plain", tolerance=1e-6),
    )

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        counts = torch.bincount(self.given.data[client][1], minlength=self.given.classes).tolist()
        held = [c for c, count in enumerate(counts) if count]
        losses = []
        for logits, label in zip(model(x), y.tolist(), strict=True):
            lowered = {c: logits[c] - self.settings["tau"] * counts[c] ** -0.25 for c in held}
            summed = [c for c in held if c != label or self.settings["sum_over"] == "all"]
            losses.append(-(lowered[label].exp() / sum(lowered[c].exp() for c in summed)).log())
        return torch.stack(losses).mean()
