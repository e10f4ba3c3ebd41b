"""How much each swept key matters: shares of the variance of AVG over the combinations of a sweep.

    f(x) = f₀ + Σᵢ fᵢ(xᵢ) + Σᵢⱼ fᵢⱼ(xᵢ, xⱼ) + …,    share of an effect = its variance / the variance of f

On a full grid, this functional ANOVA (Sobol' 1993; Hutter et al., ICML 2014) is exact: every effect is a mean
over the other keys minus the effects of lower order. Where combinations are missing, PED-ANOVA (Watanabe et
al., IJCAI 2023), as Optuna has it, estimates the shares of single keys from the better combinations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

from reports.numbers.designs import Design, Point, Value

if TYPE_CHECKING:
    import numpy as np

FEWEST_KEYS = 2
FEWEST_POINTS = 10
"""Combinations that PED-ANOVA needs."""
SMALLEST_TOP, FEWEST_TOP = 0.1, 5
"""The best combinations, which PED-ANOVA compares with all: this share of them, and no fewer than five."""
WIDE = 100
"""From this ratio of its values on, a key is taken to be on a logarithmic scale."""

Effect = tuple[str, ...]
"""One key, or two keys that interact."""


@dataclass(frozen=True)
class Importance:
    """The effects of one row in one place."""

    design: Design
    estimator: Literal["functional ANOVA of the full grid", "PED-ANOVA"]
    shares: Mapping[Effect, float]
    higher: float | None = None
    """The share of interactions of three or more keys; None if it is not known."""
    noise: float | None = None
    """The share that differences between seeds would give without any effect; None if not known."""


def importance(design: Design) -> Importance | None:
    """None where there is too little to decide, or nothing that differs."""
    means = {at: point.mean for at, point in design.measured.items()}
    if len(design.keys) < FEWEST_KEYS or len(set(means.values())) < 2:
        return None
    if design.complete:
        return _full_grid(design)
    return _ped_anova(design) if len(means) >= FEWEST_POINTS else None


def anova(values: np.ndarray[Any, Any]) -> dict[tuple[int, ...], float]:
    """Axes of a full grid → the variance of their effect; interactions of at most two axes."""
    import numpy as np

    effects: dict[tuple[int, ...], np.ndarray[Any, Any]] = {(): values.mean(keepdims=True)}
    for size in (1, 2):
        for axes in combinations(range(values.ndim), size):
            rest = tuple(axis for axis in range(values.ndim) if axis not in axes)
            lower = [effects[part] for less in range(size) for part in combinations(axes, less)]
            effects[axes] = values.mean(axis=rest, keepdims=True) - sum(lower)
    return {axes: float(np.mean(effect**2)) for axes, effect in effects.items() if axes}


def _full_grid(design: Design) -> Importance:
    import numpy as np

    levels = [design.levels(key) for key in design.keys]
    points = [design.points[at] for at in product(*levels)]
    values = np.array([point.mean for point in points]).reshape([len(each) for each in levels])
    total = float(values.var())
    shares = {
        tuple(design.keys[axis] for axis in axes): variance / total
        for axes, variance in anova(values).items()
    }
    higher = max(0.0, 1 - sum(shares.values())) if len(design.keys) > 2 else None
    noise = _noise(points)
    return Importance(
        design,
        "functional ANOVA of the full grid",
        shares,
        higher,
        None if noise is None else noise / total,
    )


def _noise(points: Sequence[Point]) -> float | None:
    """The variance of means over seeds that seeds give if keys have no effect; None unless all have the same.

    A seed that is better everywhere does not make combinations differ, so its mean is taken off.
    """
    import numpy as np

    seeds = sorted(points[0].by_seed)
    if len(seeds) < 2 or any(sorted(point.by_seed) != seeds for point in points):
        return None
    values = np.array([[point.by_seed[seed] for seed in seeds] for point in points])
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    return float((rest**2).sum() / (len(seeds) - 1) / len(seeds) / len(points))


def _ped_anova(design: Design) -> Importance:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    domains = {key: _domain(design.levels(key)) for key in design.keys}
    for at, point in design.measured.items():
        values = dict(zip(design.keys, at, strict=True))
        study.add_trial(optuna.create_trial(params=values, distributions=domains, value=point.mean))
    with warnings.catch_warnings():  # that it is experimental
        warnings.simplefilter("ignore")
        share = max(SMALLEST_TOP, FEWEST_TOP / len(design.measured))
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=share)
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return Importance(design, "PED-ANOVA", {(key,): float(found.get(key, math.nan)) for key in design.keys})


def _domain(levels: Sequence[Value]) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    numbers = [value for value in levels if not isinstance(value, str)]
    if len(numbers) < len(levels):
        return CategoricalDistribution(levels)
    low, high = min(numbers), max(numbers)
    return FloatDistribution(low, high, log=low > 0 and high >= WIDE * low)
