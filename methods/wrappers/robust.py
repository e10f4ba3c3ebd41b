"""Robust: any method whose server averages models, with an estimate that a few false replies cannot move far.

With n models y_k in a round and f = round(`tolerated` · n) possible attackers, but at most (n − 1) // 2, the
inner server gets one model in place of all; clients weigh the same whatever their numbers of samples.

`median`: coordinate by coordinate the median, the mean of the two middle ones for even n (Yin et al.,
"Byzantine-Robust Distributed Learning", ICML 2018). `trimmed_mean`: coordinate by coordinate the mean without
the f smallest and the f largest (ibid.). `krum`: the y_k with the smallest Σ ‖y_k − y_j‖² over its
max(1, n − f − 2) nearest others, the first of several (Blanchard et al., "Machine Learning with Adversaries",
NeurIPS 2017). `multi_krum`: the mean of the n − f models with the smallest such sums. `geometric_median`:
argmin_v Σ_k ‖v − y_k‖ by Weiszfeld's steps v ← Σ β_k y_k / Σ β_k with β_k = 1 / max(ν, ‖v − y_k‖), ν = 1e-6,
from the mean (Pillutla et al., "Robust Aggregation for Federated Learning", IEEE TSP 2022).

All rules move with the origin, so it makes no difference whether they see models or updates. Buffers of
floats are treated like weights. Distances are computed in double precision. A method whose server does
more than average models is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Self, TypeAlias

import torch
from pydantic import Field, model_validator
from torch import Tensor

from methods.base import Reply, Role, State, Task
from methods.shared.vectors import flattened, unflattened
from methods.wrappers._averages import in_place_of, require_average
from methods.wrappers.base import Wrapper

SMALLEST = 1e-6
"""ν, the distance below which the geometric median takes a model to be its own."""

Rule: TypeAlias = Callable[[Tensor, int, int], Tensor]
"""(n × d models, f, steps) → d numbers."""


class Robust(Wrapper):
    short_label = "Robust"
    neutral = "weighs no client by its samples at any setting"

    rule: Literal["median", "trimmed_mean", "krum", "multi_krum", "geometric_median"] = "median"
    """What the server takes instead of the mean."""
    tolerated: Annotated[float, Role.BRANCH] = Field(default=0.3, ge=0, lt=0.5)
    """The share of attackers that trimmed mean and Krum prepare for; the others have no such number."""
    steps: int = Field(default=50, ge=1)
    """Weiszfeld's steps of the geometric median; the authors take 3 or 4, as each costs a round for them."""

    @model_validator(mode="after")
    def _replaces_an_average(self) -> Self:
        require_average(self.inner, "aggregate robustly")
        return self

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        models = [reply.content["model"] for reply in replies]
        false = min(round(self.tolerated * len(models)), (len(models) - 1) // 2)
        stack = torch.stack([flattened(model) for model in models])
        chosen = unflattened(RULES[self.rule](stack, false, self.steps), models[0])
        inner = self.trained.aggregate(task, server["inner"], [in_place_of(replies, chosen)])
        return {**server, "inner": inner}


def median(models: Tensor, false: int, steps: int) -> Tensor:
    ordered = models.sort(dim=0).values
    return (ordered[(len(models) - 1) // 2] + ordered[len(models) // 2]) / 2


def trimmed_mean(models: Tensor, false: int, steps: int) -> Tensor:
    return models.sort(dim=0).values[false : len(models) - false].mean(dim=0)


def krum(models: Tensor, false: int, steps: int) -> Tensor:
    return models[_sums_to_nearest(models, false).argmin()]


def multi_krum(models: Tensor, false: int, steps: int) -> Tensor:
    best = _sums_to_nearest(models, false).argsort(stable=True)[: len(models) - false]
    return models[best.sort().values].mean(dim=0)


def geometric_median(models: Tensor, false: int, steps: int) -> Tensor:
    points = models.double()
    middle = points.mean(dim=0)
    for _ in range(steps):
        weights = 1 / (points - middle).norm(dim=1).clamp(min=SMALLEST)
        middle = (weights / weights.sum()) @ points
    return middle


def _sums_to_nearest(models: Tensor, false: int) -> Tensor:
    """Of every model the sum of the squared distances to its nearest others; 0 for a single one."""
    points = models.double()
    squared = torch.stack([(points - point).square().sum(dim=1) for point in points])
    others = squared.sort(dim=1).values[:, 1:]  # without the model itself
    return others[:, : max(1, len(models) - false - 2)].sum(dim=1)


RULES: dict[str, Rule] = {
    rule.__name__: rule for rule in (median, trimmed_mean, krum, multi_krum, geometric_median)
}
