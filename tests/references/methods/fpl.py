"""FPL: Huang et al., CVPR 2023.

CE + mean_i [ −log( Σ_{p ∈ P_y} e^{cos(z, p)/τ} / Σ_p e^{cos(z, p)/τ} ) + ‖z − p̄_y‖² / D ] over samples
whose class has prototypes: the means of FINCH's clusters of the clients' class means.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg
from tests.references.prototypes import class_means


def finch(points: Tensor) -> Tensor:
    """The means of the clusters of FINCH's last partition that has more than one, or of its first."""
    groups = [[i] for i in range(len(points))]
    first = True
    while len(groups) > 1:
        means = torch.stack([points[group].mean(dim=0) for group in groups])
        merged = [sorted(i for g in part for i in groups[g]) for part in linked(means)]
        if not first and (len(merged) == 1 or len(merged) == len(groups)):
            break
        groups, first = merged, False
    return torch.stack([points[group].mean(dim=0) for group in groups])


def linked(points: Tensor) -> list[list[int]]:
    """Connected parts of the graph that joins every point to its nearest, by cosine."""
    unit = F.normalize(points, dim=1)
    cosines = (unit @ unit.T).fill_diagonal_(-torch.inf)
    nearest = cosines.argmax(dim=1).tolist()
    part = list(range(len(points)))
    for one, other in enumerate(nearest):
        old, new = part[one], part[other]
        part = [new if each == old else each for each in part]
    return [[i for i, each in enumerate(part) if each == label] for label in sorted(set(part))]


class Reference(FedAvg):
    cases = (Case({"tau": 0.5}), Case({"tau": 0.2, "weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.prototypes: dict[int, Tensor] = {}

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.encoder(x)
        plain = F.cross_entropy(model.classifier(model.projector(z)), y)
        terms = []
        for sample, label in zip(z, y.tolist(), strict=True):
            if label not in self.prototypes:
                terms.append(sample.sum() * 0)
                continue
            weights = {
                c: (F.cosine_similarity(sample[None], centres) / self.settings["tau"]).exp().sum()
                for c, centres in self.prototypes.items()
            }
            contrast = -(weights[label] / sum(weights.values())).log()
            terms.append(contrast + (sample - self.prototypes[label].mean(dim=0)).square().mean())
        return plain + torch.stack(terms).mean()

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        uploads = [class_means(model, *self.given.data[client]) for client, model in trained.items()]
        held = sorted({label for upload in uploads for label in upload})
        self.prototypes = {
            label: finch(torch.stack([upload[label][0] for upload in uploads if label in upload]))
            for label in held
        }
        super().aggregate(trained, number)
