"""Intervals by resampling: of a difference, of the probability of improvement, of the interquartile mean.

The seed of every generator is fixed, so that a report made again is the same to the byte.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from reports.numbers.statistics import CONFIDENCE, RESAMPLES, Interval

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

AT_ONCE = 5_000_000
"""How many draws of test samples are held in memory at a time."""


def resampled_means(columns: Array, purpose: str) -> Array:
    """The mean of each column in every resample of the rows: samples × columns → resamples × columns.

    All columns see the same draws, which depend on nothing but `purpose` and the number of rows.
    """
    import numpy as np

    count = len(columns)
    draw = np.random.default_rng(zlib.crc32(purpose.encode()))
    size = max(1, min(RESAMPLES, AT_ONCE // count))
    parts = []
    for start in range(0, RESAMPLES, size):
        resamples = min(size, RESAMPLES - start)
        places = draw.integers(count, size=(resamples, count), dtype=np.int32)
        places += np.arange(resamples, dtype=np.int32)[:, None] * np.int32(count)
        times = np.bincount(places.ravel(), minlength=resamples * count).reshape(resamples, count)
        parts.append(times.astype(np.float32) @ columns.astype(np.float32) / count)
    return np.concatenate(parts)


def seed_level_interval(by_seed: Array) -> Interval:
    """95 % percentile interval of the mean over seeds.

    `by_seed` has one value per seed, or resamples × seeds if a level below the seeds was resampled already.
    Resampling a handful of seeds gives too narrow an interval, so the deviations that come from the choice of
    seeds are widened by √(n/(n−1)) · t/z, with which the interval of normal values is as wide as Student's.
    """
    import numpy as np

    values = np.broadcast_to(by_seed, (RESAMPLES, np.shape(by_seed)[-1]))
    count = values.shape[1]
    times = np.random.default_rng(0).multinomial(count, [1 / count] * count, size=RESAMPLES)
    means = values.mean(axis=1)
    resampled = means + widening(count) * ((times * values).sum(axis=1) / count - means)
    low, high = np.quantile(resampled, _tails())
    return float(low), float(high)


@cache
def widening(seeds: int) -> float:
    """By how much a bootstrap interval of this many seeds is narrower than Student's."""
    from scipy.stats import norm, t

    upper = (1 + CONFIDENCE) / 2
    return math.sqrt(seeds / (seeds - 1)) * float(t.ppf(upper, df=seeds - 1) / norm.ppf(upper))


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, Interval]:
    """How often a run of ours beats a run of theirs, over all pairs of seeds; ties count half.

    The 95 % percentile interval resamples the seeds of both (Agarwal et al., 2021).
    """
    import numpy as np

    first, second = np.asarray(ours)[:, None], np.asarray(theirs)[None, :]
    wins = 2 * (first > second) + (first == second)  # in halves, so that sums are exact
    draw = np.random.default_rng(0)
    left, right = (draw.multinomial(size, [1 / size] * size, size=RESAMPLES) for size in wins.shape)
    low, high = np.quantile(np.einsum("ri,ij,rj->r", left, wins, right), _tails()) / (2 * wins.size)
    return float(wins.mean()) / 2, (float(low), float(high))


def interquartile_mean(strata: Sequence[Sequence[float]]) -> tuple[float, Interval]:
    """The mean of the middle half of all values, with a 95 % percentile interval.

    Values are resampled within each stratum, so that every resample has as many of each.
    """
    import numpy as np

    draw = np.random.default_rng(0)
    resampled = [
        np.asarray(values)[draw.integers(len(values), size=(RESAMPLES, len(values)))] for values in strata
    ]
    everything = np.concatenate([np.asarray(values) for values in strata])
    low, high = np.quantile(_middle_mean(np.concatenate(resampled, axis=1)), _tails())
    return float(_middle_mean(everything)), (float(low), float(high))


def _middle_mean(values: Array) -> Array:
    """Along the last axis, without the lowest and the highest quarter."""
    import numpy as np

    cut = values.shape[-1] // 4
    found: Array = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)
    return found


def _tails() -> tuple[float, float]:
    return (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
