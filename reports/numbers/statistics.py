"""Spread over seeds, confidence intervals, and paired tests with correction."""

import math
import statistics
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

SIGNIFICANCE = 0.05
FEWEST_SEEDS = 3
FEWEST_RESAMPLED = 5
"""Resampling fewer seeds yields little more than their minimum and maximum."""
CONFIDENCE = 0.95
RESAMPLES = 2000

Scores = Mapping[tuple[int, str], float]
"""Accuracy by (seed, domain)."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """A method against a reference over the pairs that both have."""

    gain: float
    """Mean difference, in the unit of the scores."""
    p: float
    """Corrected over all comparisons with the same reference."""

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANCE


def mean_and_std(values: Collection[float]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (ddof 1); None where too few values define it."""
    mean = statistics.fmean(values) if values else None
    return mean, statistics.stdev(values) if len(values) > 1 else None


def confidence_interval(values: Collection[float]) -> Interval | None:
    """95 % interval of the mean, the same at every call; None below three values.

    Student's t below five values, percentile bootstrap from five on.
    """
    if len(values) < FEWEST_SEEDS:
        return None
    interval = _t_interval if len(values) < FEWEST_RESAMPLED else _bootstrap_interval
    return interval(tuple(values))


@cache
def _t_interval(values: tuple[float, ...]) -> Interval:
    from scipy.stats import t

    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(t.ppf((1 + CONFIDENCE) / 2, df=len(values) - 1)) * error
    return mean - reach, mean + reach


@cache
def _bootstrap_interval(values: tuple[float, ...]) -> Interval:
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def paired_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p-value of the paired t-test; 1 when no pair differs or fewer than two exist."""
    if len(ours) < 2 or all(a == b for a, b in zip(ours, theirs, strict=True)):
        return 1.0
    return _t_test(tuple(ours), tuple(theirs))


@cache
def _t_test(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    from scipy.stats import ttest_rel

    with warnings.catch_warnings():
        # equal differences make the variance vanish: p is then 0, as it should be
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(ttest_rel(ours, theirs).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given."""
    corrected = [0.0] * len(p_values)
    floor = 0.0
    by_size = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(by_size):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = floor
    return corrected


def comparisons(pairs: Sequence[tuple[Scores, Scores]]) -> list[Comparison | None]:
    """The first of each pair against the second, corrected over all pairs that can be tested.

    Tested are the seeds × domains that both have; None where they share fewer than three seeds.
    """
    tested: dict[int, tuple[list[float], list[float]]] = {}
    for index, (ours, theirs) in enumerate(pairs):
        common = sorted(ours.keys() & theirs.keys())
        if len({seed for seed, _ in common}) >= FEWEST_SEEDS:
            tested[index] = [ours[key] for key in common], [theirs[key] for key in common]
    corrected = holm([paired_p(*values) for values in tested.values()])
    found: list[Comparison | None] = [None] * len(pairs)
    for (index, (ours_there, theirs_there)), p in zip(tested.items(), corrected, strict=True):
        found[index] = Comparison(statistics.fmean(ours_there) - statistics.fmean(theirs_there), p)
    return found


def against(reference: Scores, others: Sequence[Scores]) -> list[Comparison | None]:
    """Each of the others against the reference."""
    return comparisons([(other, reference) for other in others])


def leads_clearly(best: Scores, rivals: Sequence[Scores], closest: Collection[int]) -> bool:
    """Whether `best` is significantly better than each of the `closest` rivals (indices)."""
    found = against(best, rivals)
    return all(
        (rival := found[index]) is not None and rival.significant and rival.gain < 0 for index in closest
    )
