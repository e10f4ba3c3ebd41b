"""Spread over seeds, and the paired test that tells a lead from noise."""

import statistics
import warnings
from collections.abc import Collection, Mapping, Sequence

SIGNIFICANCE = 0.05
FEWEST_SEEDS = 3

Scores = Mapping[tuple[int, str], float]
"""Accuracy by (seed, domain)."""


def mean_and_std(values: Collection[float]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (ddof 1); None where too few values define it."""
    mean = statistics.fmean(values) if values else None
    return mean, statistics.stdev(values) if len(values) > 1 else None


def paired_p(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p-value of the paired t-test; 1 when no pair differs or fewer than two exist."""
    if len(ours) < 2 or all(a == b for a, b in zip(ours, theirs, strict=True)):
        return 1.0
    from scipy.stats import ttest_rel

    with (
        warnings.catch_warnings()
    ):  # equal differences make the variance vanish: p is then 0, as it should be
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


def leads_clearly(best: Scores, rivals: Sequence[Scores], closest: Collection[int]) -> bool:
    """Whether `best` beats each of the `closest` rivals (indices) by more than the noise.

    Pairs are the seeds × domains that both have; p-values are corrected over all rivals.
    """
    pairs = [sorted(best.keys() & rival.keys()) for rival in rivals]
    p_values = holm(
        [
            paired_p([best[key] for key in keys], [rival[key] for key in keys])
            for rival, keys in zip(rivals, pairs, strict=True)
        ]
    )
    return all(
        len({seed for seed, _ in pairs[index]}) >= FEWEST_SEEDS
        and sum(best[key] - rivals[index][key] for key in pairs[index]) > 0
        and p_values[index] < SIGNIFICANCE
        for index in closest
    )
