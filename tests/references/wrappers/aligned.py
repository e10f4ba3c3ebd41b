"""FedSDG's server around any method that averages models.

Δ_k = y_k − x, Δ̄ = mean Δ_k, α_k = max(0, cos(Δ_k, Δ̄)), w_k = α_k / Σ α; x ← x + Σ w_k Δ_k.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, average_into, flat_parameters


def alignment_weights(updates: list[Tensor], sizes: list[int], settings: Any) -> list[float]:
    """The weight of every update; all the same if none agrees with the others."""
    count = len(updates)
    cosines = []
    for k, update in enumerate(updates):
        others = [other for j, other in enumerate(updates) if settings["reference"] == "mean" or j != k]
        mean = sum(others, torch.zeros_like(update)) / max(1, len(others))
        cosines.append(F.cosine_similarity(update, mean, dim=0))
    if settings["weighting"] == "relu":
        alphas = [max(0.0, float(cosine)) for cosine in cosines]
    else:
        alphas = (torch.stack(cosines) / settings["temperature"]).exp().tolist()
    if settings["times_samples"]:
        alphas = [alpha * size for alpha, size in zip(alphas, sizes, strict=True)]
    if sum(alphas) < 1e-6:
        return [1 / count] * count
    weights = [alpha / sum(alphas) for alpha in alphas]
    return capped(weights, settings["max_weight"])


def capped(weights: list[float], most: float | None) -> list[float]:
    """What exceeds the largest allowed weight goes to the others, in proportion to theirs."""
    if most is None:
        return weights
    cut: set[int] = set()
    while over := [k for k, weight in enumerate(weights) if weight > most + 1e-12]:
        cut |= set(over)
        rest = sum(weight for k, weight in enumerate(weights) if k not in cut)
        left = 1 - most * len(cut)
        weights = [most if k in cut else weight / rest * left for k, weight in enumerate(weights)]
    return weights


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (
            Case(),
            Case({"weighting": "softmax", "temperature": 0.3, "times_samples": True}),
            Case({"reference": "leave_one_out", "max_weight": 0.6}),
        )

        def __init__(self, given: Any) -> None:
            self.alignment = given.settings
            super().__init__(given.inside())

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            x = flat_parameters(self.model).detach()
            updates = [flat_parameters(y).detach() - x for y in trained.values()]
            sizes = [self.given.size(client) for client in trained]
            weights = alignment_weights(updates, sizes, self.alignment)
            average_into(self.model, list(trained.values()), weights)

    return Reference
