"""FedNTD: Lee et al., NeurIPS 2022.

CE + β τ² · KL(q_glob ‖ q_own) per sample, where q are softmaxes at temperature τ over all classes but the
true one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case({"beta": 1.5, "tau": 2.0}), Case(optimiser="adam"))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        with torch.no_grad():
            teacher = self.model(x)
        student, tau = model(x), self.settings["tau"]
        terms = []
        for own, other, label in zip(student, teacher, y, strict=True):
            kept = [c for c in range(self.given.classes) if c != label]
            q_own, q_glob = (own[kept] / tau).softmax(0), (other[kept] / tau).softmax(0)
            terms.append((q_glob * (q_glob / q_own).log()).sum())
        plain = super().loss(model, x, y, client, number, step)
        return plain + self.settings["beta"] * tau**2 * torch.stack(terms).mean()
