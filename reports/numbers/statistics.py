"""Spread over seeds, confidence intervals, and paired tests with correction."""

import math
import statistics
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from reports.numbers.scores import BySeed

SIGNIFICANCE = 0.05
FEWEST_SEEDS = 3
"""An interval needs this many seeds."""
FEWEST_TESTED = 5
"""A test needs this many seeds: with fewer, hardly any real difference could be shown."""
CONFIDENCE = 0.95
RESAMPLES = 2000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """A method against a reference over the seeds that both have."""

    gain: float
    """Mean difference, in the unit of the values."""
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
    """Student's 95 % interval of the mean; None below three values.

    Not a bootstrap, which is far too narrow for a handful of values: of five, it covers about 80 %.
    """
    return _t_interval(tuple(values)) if len(values) >= FEWEST_SEEDS else None


@cache
def _t_interval(values: tuple[float, ...]) -> Interval:
    from scipy.stats import t

    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(t.ppf((1 + CONFIDENCE) / 2, df=len(values) - 1)) * error
    return mean - reach, mean + reach


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


def comparisons(pairs: Sequence[tuple[BySeed, BySeed]]) -> list[Comparison | None]:
    """The first of each pair against the second, corrected over all pairs that can be tested.

    The seed is the unit of replication: one value per seed, over the seeds that both have. None where these
    are fewer than five.
    """
    tested: dict[int, tuple[list[float], list[float]]] = {}
    for index, (ours, theirs) in enumerate(pairs):
        common = sorted(ours.keys() & theirs.keys())
        if len(common) >= FEWEST_TESTED:
            tested[index] = [ours[seed] for seed in common], [theirs[seed] for seed in common]
    corrected = holm([paired_p(*values) for values in tested.values()])
    found: list[Comparison | None] = [None] * len(pairs)
    for (index, (ours_there, theirs_there)), p in zip(tested.items(), corrected, strict=True):
        found[index] = Comparison(statistics.fmean(ours_there) - statistics.fmean(theirs_there), p)
    return found


def against(reference: BySeed, others: Sequence[BySeed]) -> list[Comparison | None]:
    """Each of the others against the reference."""
    return comparisons([(other, reference) for other in others])


def leads_clearly(best: BySeed, rivals: Sequence[BySeed], closest: Collection[int]) -> bool:
    """Whether `best` is significantly better than each of the `closest` rivals (indices)."""
    found = against(best, rivals)
    return all(
        (rival := found[index]) is not None and rival.significant and rival.gain < 0 for index in closest
    )
