"""The gain of every row over the reference: its interval, and what else its paired seeds say about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.records.reader import CellRecord
from reports.numbers.bootstrap import probability_of_improvement, resampled_means, seed_level_interval
from reports.numbers.power import detectable_difference
from reports.numbers.scores import RowKey, RowScores
from reports.numbers.statistics import FEWEST_SEEDS, Interval

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

TestSet = tuple[str, str]
"""A domain and the digest of its labels; seeds with the same one are tested on the same samples."""


@dataclass(frozen=True)
class Gain:
    """A row against the reference, over the seeds that both have. In percentage points."""

    seeds: int
    interval: Interval
    """95 %, of the mean difference of AVG."""
    sampled: bool
    """Whether the interval covers the luck of the test samples; else that of the seeds alone."""
    improvement: float
    """The probability that a run of the row beats a run of the reference."""
    improvement_interval: Interval
    detectable: float
    """The smallest true difference that so many seeds would find with a probability of 80 %."""


def gains_over(reference: RowScores, rows: Sequence[RowScores]) -> dict[RowKey, Gain]:
    """The gain of every row that shares at least three seeds with the reference; the reference has none."""
    import numpy as np

    ours = {row.key: row.averages() for row in rows if row.key != reference.key}
    theirs = reference.averages()
    pairs = {key: sorted(by_seed.keys() & theirs.keys()) for key, by_seed in ours.items()}
    pairs = {key: seeds for key, seeds in pairs.items() if len(seeds) >= FEWEST_SEEDS}
    by_key = {row.key: row for row in rows}
    resampled = _resampled({key: (by_key[key], seeds) for key, seeds in pairs.items()}, reference)
    found = {}
    for key, seeds in pairs.items():
        differences = [ours[key][seed] - theirs[seed] for seed in seeds]
        improvement, improvement_interval = probability_of_improvement(
            [ours[key][seed] for seed in seeds], [theirs[seed] for seed in seeds]
        )
        found[key] = Gain(
            seeds=len(seeds),
            interval=seed_level_interval(resampled.get(key, np.array(differences))),
            sampled=key in resampled,
            improvement=improvement,
            improvement_interval=improvement_interval,
            detectable=detectable_difference(differences),
        )
    return found


def _resampled(
    pairs: Mapping[RowKey, tuple[RowScores, Sequence[int]]], reference: RowScores
) -> dict[RowKey, Array]:
    """Resamples × seeds of each row's difference; rows are left out if a cell has no predictions to compare.

    Both methods, and all seeds with the same test set, see the same resampled test samples: a picture that
    favours a method does so at every seed, and more seeds do not make up for it.
    """
    import numpy as np

    columns: dict[TestSet, list[tuple[RowKey, int, Array]]] = {}
    whole = []
    for key, (row, seeds) in pairs.items():
        if differences := _sample_differences(row, reference, seeds):
            whole.append(key)
            for (test_set, place), column in differences.items():
                columns.setdefault(test_set, []).append((key, place, column))
    found = {key: np.zeros((1, len(pairs[key][1]))) for key in whole}
    for (domain, digest), entries in columns.items():
        means = resampled_means(np.stack([column for _, _, column in entries], axis=1), f"{domain} {digest}")
        for (key, place, _), mean in zip(entries, means.T, strict=True):
            total = np.broadcast_to(found[key], (len(mean), found[key].shape[1])).copy()
            total[:, place] += 100 * mean / len(reference.domains)
            found[key] = total
    return found


def _sample_differences(
    row: RowScores, reference: RowScores, seeds: Sequence[int]
) -> dict[tuple[TestSet, int], Array]:
    """(Test set, place of the seed) → ours minus theirs, sample by sample; empty unless all are there."""
    found: dict[tuple[TestSet, int], Array] = {}
    for place, seed in enumerate(seeds):
        first, second = (_cell(each, seed) for each in (row, reference))
        for test_set, column in _cell_differences(first, second, row.domains):
            found[test_set, place] = column
    return found if len(found) == len(seeds) * len(row.domains) else {}


def _cell_differences(
    first: CellRecord, second: CellRecord, domains: Sequence[str]
) -> Iterator[tuple[TestSet, Array]]:
    if first.as_published or second.as_published:  # whose accuracy is not that of the final predictions
        return
    ours, theirs = first.predictions, second.predictions
    if ours is None or theirs is None:
        return
    for domain in domains:
        digest = ours.digests.get(domain)
        if digest is not None and digest == theirs.digests.get(domain):
            yield (domain, digest), ours.correctness(domain) - theirs.correctness(domain)


def _cell(row: RowScores, seed: int) -> CellRecord:
    return next(cell for cell in row.cells if cell.seed == seed)
