"""Resampling and power against SciPy, statsmodels, closed forms and repeated draws."""

import math
import zlib

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from reports.numbers.bootstrap import (
    AT_ONCE,
    interquartile_mean,
    probability_of_improvement,
    resampled_means,
    seed_level_interval,
)
from reports.numbers.power import detectable_difference
from reports.numbers.statistics import RESAMPLES


def test_resampled_means_spread_like_the_mean_of_independent_samples() -> None:
    draw = np.random.default_rng(1)
    columns = draw.integers(-1, 2, size=(400, 3)).astype(np.float32)
    found = resampled_means(columns, "mnist")
    assert found.shape == (RESAMPLES, 3)
    assert found.mean(axis=0) == pytest.approx(columns.mean(axis=0), abs=0.01)
    assert found.std(axis=0) == pytest.approx(columns.std(axis=0) / math.sqrt(400), rel=0.06)


def test_all_columns_see_the_same_draws_and_every_call_the_same_ones() -> None:
    column = np.random.default_rng(2).random((50, 1)).astype(np.float32)
    twice = resampled_means(np.hstack([column, 2 * column]), "mnist")
    assert twice[:, 1] == pytest.approx(2 * twice[:, 0], rel=1e-5)
    assert (resampled_means(column, "mnist") == resampled_means(column, "mnist")).all()
    assert (resampled_means(column, "mnist") != resampled_means(column, "fonts")).any()


@pytest.mark.parametrize("parts", [1, 3])
def test_large_test_sets_are_resampled_in_parts_to_the_same_effect(parts: int) -> None:
    count = math.ceil((parts - 0.5) * AT_ONCE / RESAMPLES)
    columns = np.random.default_rng(3).random((count, 2)).astype(np.float32)
    draw = np.random.default_rng(zlib.crc32(b"mnist"))
    expected = [
        columns[draw.integers(count, size=count, dtype=np.int32)].mean(axis=0) for _ in range(RESAMPLES)
    ]
    assert resampled_means(columns, "mnist") == pytest.approx(np.array(expected), rel=1e-4)


@pytest.mark.parametrize("seeds", [5, 10, 40])
def test_the_interval_over_seeds_is_about_as_wide_as_students(seeds: int) -> None:
    draw = np.random.default_rng(4)
    widths = []
    for _ in range(60):
        values = draw.normal(size=seeds)
        low, high = seed_level_interval(values)
        student = stats.t.interval(0.95, seeds - 1, loc=values.mean(), scale=stats.sem(values))
        widths.append((high - low) / (student[1] - student[0]))
    assert np.mean(widths) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_covers_the_truth_as_often_as_it_says(seeds: int) -> None:
    """About 80 % without the widening."""
    draw = np.random.default_rng(5)
    intervals = [seed_level_interval(draw.normal(size=seeds)) for _ in range(400)]
    assert np.mean([low <= 0 <= high for low, high in intervals]) == pytest.approx(0.95, abs=0.03)


def test_the_probability_of_improvement_is_mann_whitneys_u() -> None:
    ours, theirs = [61.0, 63.0, 62.0, 65.0], [60.0, 62.0, 61.0, 64.0, 59.0]
    value, (low, high) = probability_of_improvement(ours, theirs)
    assert value == pytest.approx(stats.mannwhitneyu(ours, theirs).statistic / 20)
    assert 0 < low < value < high <= 1
    assert probability_of_improvement(theirs, ours)[0] == pytest.approx(1 - value)
    assert probability_of_improvement([2.0] * 3, [1.0] * 3) == (1.0, (1.0, 1.0))
    assert probability_of_improvement([1.0] * 3, [1.0] * 3) == (0.5, (0.5, 0.5))


@pytest.mark.parametrize("sizes", [(5, 5, 5), (3, 5), (4,)])
def test_the_interquartile_mean_is_scipys_trimmed_mean(sizes: tuple[int, ...]) -> None:
    draw = np.random.default_rng(6)
    strata = [list(place + draw.normal(size=size)) for place, size in enumerate(sizes)]
    value, (low, high) = interquartile_mean(strata)
    assert value == pytest.approx(stats.trim_mean(np.concatenate(strata), 0.25))
    assert low < value < high


def test_seeds_are_resampled_within_their_setting() -> None:
    """With no spread inside the settings there is nothing to resample, however far apart they are."""
    value, interval = interquartile_mean([[1.0] * 4, [2.0] * 4, [9.0] * 4])
    assert interval == pytest.approx((value, value))


@pytest.mark.parametrize("seeds", [3, 5, 10, 30])
def test_the_detectable_difference_is_that_of_statsmodels(seeds: int) -> None:
    differences = list(np.random.default_rng(7).normal(size=seeds))
    effect = TTestPower().solve_power(nobs=seeds, alpha=0.05, power=0.8)
    assert detectable_difference(differences) == pytest.approx(effect * np.std(differences, ddof=1), rel=1e-4)
