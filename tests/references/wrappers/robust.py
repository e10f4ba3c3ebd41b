"""Robust rules instead of the average: median, trimmed mean, Krum, multi-Krum, geometric median."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, flat_parameters, set_parameters


def combined(models: Tensor, settings: Any) -> Tensor:
    """One model in place of all; a row per model."""
    count = len(models)
    attackers = min(round(settings["tolerated"] * count), (count - 1) // 2)
    rule = settings["rule"]
    if rule == "median":
        return models.quantile(0.5, dim=0)
    if rule == "trimmed_mean":
        return models.sort(dim=0).values[attackers : count - attackers].mean(dim=0)
    if rule == "geometric_median":
        point = models.mean(dim=0)
        for _ in range(settings["steps"]):
            weights = 1 / (models - point).norm(dim=1).clamp(min=1e-6)
            point = weights @ models / weights.sum()
        return point
    squared = torch.cdist(models, models, compute_mode="donot_use_mm_for_euclid_dist").square()
    near = max(1, count - attackers - 2)
    sums = [squared[k].sort().values[1 : 1 + near].sum() for k in range(count)]
    order = sorted(range(count), key=lambda k: float(sums[k]))
    return models[order[: 1 if rule == "krum" else count - attackers]].mean(dim=0)


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (
            Case(),
            Case({"rule": "trimmed_mean"}, participation=1.0),
            Case({"rule": "krum"}, participation=1.0),
            Case({"rule": "multi_krum"}, participation=1.0),
            Case({"rule": "geometric_median", "steps": 4}, participation=1.0),
        )

        def __init__(self, given: Any) -> None:
            self.robust = given.settings
            super().__init__(given.inside())

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            models = torch.stack([flat_parameters(model).detach() for model in trained.values()])
            set_parameters(self.model, combined(models, self.robust))

    return Reference
