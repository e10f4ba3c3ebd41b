"""Spread, intervals, tests and ranks against SciPy, statsmodels and hand computation."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from reports.numbers.ranking import rank_methods
from reports.numbers.statistics import (
    against,
    confidence_interval,
    holm,
    leads_clearly,
    mean_and_std,
    paired_p,
)


def by_seed(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


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
    best = by_seed([50, 60, 51, 61, 52, 62])
    steady = by_seed([48, 58.5, 49, 59, 50.5, 60])
    wavering = by_seed([40, 69, 60, 52, 43, 70])
    assert leads_clearly(best, [steady], closest=[0])
    assert not leads_clearly(best, [wavering], closest=[0])


def test_more_rivals_ask_for_more() -> None:
    differences = [1.0, 3.0, -0.5, 2.0, 2.5, 1.0]
    p = stats.ttest_1samp(differences, 0).pvalue
    assert 0.025 < p < 0.05  # enough for one comparison, not for two
    rival = by_seed([50.0] * 6)
    best = by_seed([50 + difference for difference in differences])
    assert leads_clearly(best, [rival], closest=[0])
    assert not leads_clearly(best, [rival, rival], closest=[0])


def test_four_seeds_prove_nothing() -> None:
    best = {seed: 90.0 + seed for seed in range(4)}
    rival = {key: value - 10 for key, value in best.items()}
    assert not leads_clearly(best, [rival], closest=[0])
    best[4] = 94.0
    assert not leads_clearly(best, [rival], closest=[0])  # a fifth seed that the rival lacks
    rival[4] = 84.0
    assert leads_clearly(best, [rival], closest=[0])


def test_a_best_that_is_behind_on_the_common_seeds_does_not_lead() -> None:
    rival = by_seed([50, 60, 51, 61, 52, 62])
    best = {key: value - 5 for key, value in rival.items()} | {6: 199.0}
    assert not leads_clearly(best, [rival], closest=[0])


def test_holm_agrees_with_statsmodels() -> None:
    p_values = [0.2, 0.001, 0.04, 0.04, 0.012, 0.9]
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(list(expected))


@pytest.mark.parametrize("values", [[60.0, 62.0, 61.0], [60.0, 62.0, 61.0, 70.5, 66.0]])
def test_the_interval_is_students(values: list[float]) -> None:
    expected = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert confidence_interval(values) == pytest.approx(expected)


def test_the_interval_needs_three_values_and_no_spread() -> None:
    assert confidence_interval([60.0, 62.0]) is None
    assert confidence_interval([5.0] * 3) == (5.0, 5.0)
    assert confidence_interval([5.0] * 5) == (5.0, 5.0)


def test_comparisons_are_corrected_over_those_that_can_be_made() -> None:
    reference = by_seed([50.0, 60, 51, 61, 52, 62])
    gains = [[1.0, 3.0, -0.5, 2.0, 2.5, 1.0], [0.1, -0.2, 0.3, -0.1, 0.2, 0.0]]
    others = [
        {key: value + gain for (key, value), gain in zip(reference.items(), by, strict=True)} for by in gains
    ]
    few = {seed: value for seed, value in reference.items() if seed < 4}
    first, second, third = against(reference, [others[0], few, others[1]])
    raw = [stats.ttest_1samp(by, 0).pvalue for by in gains]
    expected = multipletests(raw, method="holm")[1]
    assert first is not None and third is not None and second is None
    assert [first.p, third.p] == pytest.approx(expected[:2].tolist())
    assert [first.gain, third.gain] == pytest.approx([1.5, 0.05])
    assert not first.significant  # 0.03 alone, 0.06 as one of two


def test_average_ranks_by_hand() -> None:
    scores = {"a": [90.0, 80.0, 70.0], "b": [85.0, 82.0, 60.0], "c": [80.0, 70.0, 60.0]}
    ranking = rank_methods(scores)
    # ranks: a 1, 2, 1; b 2, 1, 2.5; c 3, 3, 2.5
    assert ranking.methods == ("a", "b", "c")
    assert ranking.average_ranks == pytest.approx((4 / 3, 5.5 / 3, 8.5 / 3))
    assert ranking.p_value == pytest.approx(stats.friedmanchisquare(*scores.values()).pvalue)


@pytest.mark.parametrize(("methods", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_uses_the_quantiles_of_demsars_table(methods: int, q: float) -> None:
    scores = {f"m{place}": [float(place)] * 12 for place in range(methods)}
    expected = q * math.sqrt(methods * (methods + 1) / (6 * 12))
    assert rank_methods(scores).critical_difference == pytest.approx(expected, abs=2e-3)


def test_cliques_are_the_longest_stretches_within_the_critical_difference() -> None:
    # with 4 methods and 12 datasets the difference is 2.569 · sqrt(20 / 72) = 1.354; the ranks are 1, 2, 3, 4
    ranking = rank_methods({name: [float(-place)] * 12 for place, name in enumerate("abcd")})
    assert ranking.critical_difference == pytest.approx(1.354, abs=1e-3)
    assert ranking.cliques == (("a", "b"), ("b", "c"), ("c", "d"))
    # 40 datasets: 0.742, all are told apart
    assert rank_methods({name: [float(-place)] * 40 for place, name in enumerate("abcd")}).cliques == ()


def test_where_friedman_finds_nothing_all_methods_are_alike() -> None:
    tied = rank_methods({name: [1.0, 2.0] for name in "abc"})
    assert (tied.p_value, tied.cliques) == (1.0, (("a", "b", "c"),))
    few = rank_methods({"a": [3.0, 3.0], "b": [2.0, 2.0], "c": [1.0, 1.0]})
    assert few.p_value > 0.05 and few.cliques == (("a", "b", "c"),)


@pytest.mark.parametrize("scores", [{"a": [1.0, 2.0], "b": [1.0, 2.0]}, {name: [1.0] for name in "abc"}])
def test_too_little_to_rank_is_refused(scores: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match="a ranking needs 3 methods"):
        rank_methods(scores)
