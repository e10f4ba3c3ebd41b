"""FedPLVM: Wang et al., NeurIPS 2024.

CE + λ · mean_i [ −log( Σ_{p ∈ P_y} e^{s(z, p)/τ} / Σ_p e^{s(z, p)/τ} ) + 2 (cos(z, p̄_y) − 1)² ], s =
max(cos, 0.01)^α. Clients send the means of FINCH's clusters of their z per class, the server clusters these
again. z is what the classifier works on.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.methods.fpl import finch
from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"lam": 0.5, "tau": 0.3, "alpha": 0.6, "local_prototypes": 9}),
        Case({"tau": 0.3, "weighting": "uniform", "local_prototypes": 9}, optimiser="adam"),
    )

    def start(self) -> None:
        self.prototypes: dict[int, Tensor] = {}

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.embed(x)
        terms = []
        for sample, label in zip(z, y.tolist(), strict=True):
            if label not in self.prototypes:
                terms.append(sample.sum() * 0)
                continue
            weights = {}
            for c, prototypes in self.prototypes.items():
                near = F.cosine_similarity(sample[None], prototypes).clamp(min=0.01)
                weights[c] = (near ** self.settings["alpha"] / self.settings["tau"]).exp().sum()
            middle = self.prototypes[label].mean(dim=0)
            apart = 2 * (F.cosine_similarity(sample, middle, dim=0) - 1).square()
            terms.append(apart - (weights[label] / sum(weights.values())).log())
        plain = F.cross_entropy(model.classifier(z), y)
        return plain + self.settings["lam"] * torch.stack(terms).mean()

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        sent: dict[int, list[Tensor]] = {}
        for client, model in trained.items():
            x, y = self.given.data[client]
            with torch.no_grad():
                z = model.embed(x)
            for label in y.unique().tolist():
                sent.setdefault(label, []).append(finch(z[y == label]))
        self.prototypes = {label: finch(torch.cat(parts)) for label, parts in sent.items()}
        super().aggregate(trained, number)
