"""Spread, paired test and correction against hand computation."""

import math

import pytest
from scipy import stats

from reports.statistics import holm, leads_clearly, mean_and_std, paired_p


def by_seed_and_domain(values: list[float]) -> dict[tuple[int, str], float]:
    """Six values as three seeds × two domains."""
    return {(index // 2, "ab"[index % 2]): value for index, value in enumerate(values)}


def test_mean_and_sample_std() -> None:
    assert mean_and_std([60.0, 62.0, 61.0]) == (61.0, 1.0)
    assert mean_and_std([60.0]) == (60.0, None)
    assert mean_and_std([]) == (None, None)


def test_paired_p_is_that_of_the_t_statistic() -> None:
    ours, theirs = [5.0, 7.0, 6.0, 9.0], [4.0, 5.0, 6.0, 6.0]
    # differences 1, 2, 0, 3: mean 1.5, variance 5/3, t = 1.5 / sqrt(5/3/4)
    t = 1.5 / math.sqrt(5 / 12)
    assert paired_p(ours, theirs) == pytest.approx(2 * stats.t.sf(t, df=3))
    assert paired_p(theirs, ours) == pytest.approx(paired_p(ours, theirs))


def test_paired_p_without_any_difference_or_spread() -> None:
    assert paired_p([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_p([1.0], [0.0]) == 1.0
    assert paired_p([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]) == 0.0


def test_holm_by_hand() -> None:
    # sorted: 4 × 0.005, 3 × 0.01, 2 × 0.03, then 0.04 raised to the one before it
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_steady_lead_is_clear_and_a_wavering_one_is_not() -> None:
    best = by_seed_and_domain([50, 60, 51, 61, 52, 62])
    steady = by_seed_and_domain([48, 58.5, 49, 59, 50.5, 60])
    wavering = by_seed_and_domain([40, 69, 60, 52, 43, 70])
    assert leads_clearly(best, [steady], closest=[0])
    assert not leads_clearly(best, [wavering], closest=[0])


def test_more_rivals_ask_for_more() -> None:
    differences = [1.0, 3.0, -0.5, 2.0, 2.5, 1.0]
    p = stats.ttest_1samp(differences, 0).pvalue
    assert 0.025 < p < 0.05  # enough for one comparison, not for two
    rival = by_seed_and_domain([50.0] * 6)
    best = by_seed_and_domain([50 + difference for difference in differences])
    assert leads_clearly(best, [rival], closest=[0])
    assert not leads_clearly(best, [rival, rival], closest=[0])


def test_two_seeds_prove_nothing() -> None:
    best = {(seed, domain): 90.0 + seed for seed in range(2) for domain in "abcdef"}
    rival = {key: value - 10 for key, value in best.items()}
    assert not leads_clearly(best, [rival], closest=[0])
    best |= {(2, domain): 92.0 for domain in "abcdef"}
    assert not leads_clearly(best, [rival], closest=[0])  # a third seed that the rival lacks


def test_a_best_that_is_behind_on_the_common_seeds_does_not_lead() -> None:
    rival = by_seed_and_domain([50, 60, 51, 61, 52, 62])
    best = {key: value - 5 for key, value in rival.items()} | {(3, "a"): 99.0, (3, "b"): 99.0}
    assert not leads_clearly(best, [rival], closest=[0])
