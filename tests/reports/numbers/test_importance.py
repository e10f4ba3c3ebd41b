"""Shares of swept keys and of their interactions in the variance of AVG."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reports.numbers.designs import Combination, Design, Place, Point
from reports.numbers.importance import anova, importance

BY_HAND = np.array([[1.0, 2, 3], [5, 4, 9]])
"""Row means 2 and 6, column means 3, 3 and 6, mean 4. Sums of squares: rows 3·(4 + 4) = 24, columns
2·(1 + 1 + 4) = 12, interaction (residuals 0, 1, −1, 0, −1, 1) 4; together 9 + 4 + 1 + 1 + 0 + 25 = 40."""


def design(means: Mapping[Combination, float], spread: float = 0.0, keys: str = "abc") -> Design:
    width = len(next(iter(means)))
    points = {
        at: Point({0: mean - spread, 1: mean + spread} if spread else {0: mean}, 1)
        for at, mean in means.items()
    }
    names = tuple(f"fedlsa.{key}" for key in keys[:width])
    return Design(Place("s", "", "d"), "fedlsa", "FedLSA", names, points, dict.fromkeys(names, 0.0))


def of_array(values: np.ndarray[Any, Any], **options: Any) -> Design:
    return design({tuple(map(float, at)): float(value) for at, value in np.ndenumerate(values)}, **options)


def test_a_full_grid_of_two_keys_is_the_two_way_anova() -> None:
    found = importance(of_array(BY_HAND))
    assert found is not None and found.estimator == "functional ANOVA of the full grid"
    assert found.shares == pytest.approx(
        {("fedlsa.a",): 24 / 40, ("fedlsa.b",): 12 / 40, ("fedlsa.a", "fedlsa.b"): 4 / 40}
    )
    assert found.higher is None and found.noise is None


def test_the_effects_of_three_keys_add_up_to_the_variance() -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    variances = anova(values)
    assert set(variances) == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)}
    main = values.mean(axis=(0, 2))
    assert variances[(1,)] == pytest.approx(main.var())
    found = importance(of_array(values))
    assert found is not None and found.higher is not None
    assert sum(found.shares.values()) + found.higher == pytest.approx(1)
    additive = np.add.outer(np.add.outer([0.0, 1], [0.0, 2, 5]), [0.0, 1, 2, 3])
    found = importance(of_array(additive))
    assert found is not None and found.higher == pytest.approx(0)
    assert max(share for effect, share in found.shares.items() if len(effect) == 2) == pytest.approx(0)


def test_seeds_alone_would_give_the_share_of_pure_noise() -> None:
    """With values that are nothing but noise, the share of the seeds is about all of the variance."""
    random = np.random.default_rng(1)
    seeds = random.normal(size=(8, 8, 2))
    points: dict[Combination, Point] = {
        (float(row), float(column)): Point({0: first, 1: second}, 2)
        for row, line in enumerate(seeds)
        for column, (first, second) in enumerate(line)
    }
    keys = ("fedlsa.a", "fedlsa.b")
    found = importance(
        Design(Place("s", "", "d"), "fedlsa", "FedLSA", keys, points, dict.fromkeys(keys, 0.0))
    )
    assert found is not None and found.noise == pytest.approx(1, abs=0.25)
    assert importance(of_array(BY_HAND, spread=0.1)).noise == pytest.approx(0)  # type: ignore[union-attr]
    # one seed is better in half of the combinations: residuals ±0.1, so 12·0.01 / (1·2·6) over 40/6
    points = {
        at: Point({0: point.by_seed[0] - sign / 10, 1: point.by_seed[0] + sign / 10}, 2)
        for (at, point), sign in zip(of_array(BY_HAND).points.items(), (1, -1) * 3, strict=True)
    }
    found = importance(replace(of_array(BY_HAND), points=points))
    assert found is not None and found.noise == pytest.approx(0.01 / (40 / 6))


def test_missing_combinations_are_left_to_ped_anova(capfd: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    drawn = random.uniform(0.01, 1, size=(40, 2))
    found = importance(design({(float(a), float(b)): 10 * float(a) + 0.01 * float(b) for a, b in drawn}))
    assert found is not None and found.estimator == "PED-ANOVA"
    assert sum(found.shares.values()) == pytest.approx(1) and found.shares[("fedlsa.a",)] > 0.8
    text = importance(design({(float(a), "ab"[int(b > 0.5)]): float(a) for a, b in drawn}))
    assert capfd.readouterr().err == ""  # Optuna would announce its study
    assert text is not None and set(text.shares) == {("fedlsa.a",), ("fedlsa.b",)}


def test_too_little_gives_no_importance() -> None:
    one_at_a_time: dict[Combination, float] = {(0.0, 0.0): 1.0, (1.0, 0.0): 2.0, (0.0, 1.0): 3.0}
    assert importance(design(one_at_a_time)) is None
    assert importance(design({(float(value),): float(value) for value in range(12)})) is None
    assert importance(of_array(np.ones((3, 3)))) is None
