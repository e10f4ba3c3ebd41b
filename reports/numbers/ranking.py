"""Methods ranked over several datasets: Friedman's test and Nemenyi's critical difference."""

import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.records.reader import Run
from bench.records.schema import row_name
from reports.numbers.scores import rows_of
from reports.numbers.statistics import SIGNIFICANCE

FEWEST_METHODS = 3
FEWEST_BLOCKS = 2
ENOUGH_METHODS = 5
"""In common, for which suites without them are left out of a ranking over many."""


@dataclass(frozen=True)
class Ranking:
    """Methods by average rank, the best first; rank 1 is the highest score."""

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    critical_difference: float
    """Average ranks closer than this are not significantly different (Nemenyi, 5 %)."""
    p_value: float
    """Of Friedman's test of the hypothesis that all methods perform the same."""
    cliques: tuple[tuple[str, ...], ...]
    """Largest groups without a significant difference; one of all methods if Friedman's test finds none."""


@dataclass(frozen=True)
class Blocks:
    """The basis of a ranking: one score per method and block."""

    names: tuple[str, ...]
    scores: Mapping[str, tuple[float, ...]]
    by_seed: Mapping[str, tuple[tuple[float, ...], ...]]
    """Method → for each block, its score at each seed."""

    def leads(self, method: str) -> list[list[float]]:
        """Block → the scores of a method at each seed minus the block's mean over all methods.

        Blocks are of unequal difficulty; without the mean, the middle half of all scores would be little
        more than the scores in the blocks of middling difficulty.
        """
        levels = [statistics.fmean(block) for block in zip(*self.scores.values(), strict=True)]
        return [
            [value - level for value in values]
            for values, level in zip(self.by_seed[method], levels, strict=True)
        ]


def rank_methods(scores: Mapping[str, Sequence[float]]) -> Ranking:
    """Rank the methods by their scores, one for each dataset and in the same order for every method."""
    from scipy.stats import studentized_range

    blocks = {len(values) for values in scores.values()}
    if len(scores) < FEWEST_METHODS or len(blocks) != 1 or min(blocks) < FEWEST_BLOCKS:
        raise ValueError(
            f"a ranking needs {FEWEST_METHODS} methods with a score each in the same {FEWEST_BLOCKS} or "
            "more blocks"
        )
    count, methods = blocks.pop(), len(scores)
    averages = _average_ranks(scores)
    ordered = sorted(scores, key=lambda name: averages[name])
    quantile = float(studentized_range.ppf(1 - SIGNIFICANCE, methods, math.inf)) / math.sqrt(2)
    difference = quantile * math.sqrt(methods * (methods + 1) / (6 * count))
    p_value = _friedman_p(list(scores.values()))
    alike = _cliques(ordered, averages, difference) if p_value < SIGNIFICANCE else (tuple(ordered),)
    ranks = tuple(averages[name] for name in ordered)
    return Ranking(tuple(ordered), ranks, difference, p_value, alike)


def rank_runs(runs: Sequence[Run]) -> Ranking | None:
    """The ranking over all suites and variants; None below two datasets or three methods common to all."""
    datasets = {name for run in runs for name in _datasets(run)}
    blocks = blocks_of(runs)
    if min(len(datasets), len(blocks.names)) < FEWEST_BLOCKS or len(blocks.scores) < FEWEST_METHODS:
        return None
    return rank_methods(blocks.scores)


def comparable(runs: Sequence[Run]) -> list[Run]:
    """As many of the runs as have enough methods in common to be ranked; of these choices, the most methods.

    All of them where no choice is enough.
    """
    labels = [set(blocks_of([run]).scores) for run in runs]
    for size in range(len(runs), FEWEST_BLOCKS - 1, -1):
        choices = [
            (len(set.intersection(*(labels[place] for place in places))), places)
            for places in combinations(range(len(runs)), size)
            if len({name for place in places for name in _datasets(runs[place])}) >= FEWEST_BLOCKS
        ]
        most, places = max(choices, key=lambda choice: choice[0], default=(0, ()))
        if most >= ENOUGH_METHODS:
            return [runs[place] for place in places]
    return list(runs)


def _datasets(run: Run) -> set[str]:
    return {cell.config.dataset.name for cell in run.cells if cell.config}


def blocks_of(runs: Sequence[Run]) -> Blocks:
    """AVG by suite and variant of the ranked methods, by label, that have one everywhere."""
    by_block: dict[str, dict[str, tuple[float, ...]]] = {}
    for run in runs:
        for variant in run.variants:
            averages = {row.label: row.averages() for row in rows_of(run, variant) if row.ranked}
            by_block[row_name(run.suite.name, variant)] = {
                label: tuple(by_seed.values()) for label, by_seed in averages.items() if by_seed
            }
    labels = dict.fromkeys(label for block in by_block.values() for label in block)
    common = [label for label in labels if all(label in block for block in by_block.values())]
    by_seed = {label: tuple(block[label] for block in by_block.values()) for label in common}
    scores = {label: tuple(map(statistics.fmean, values)) for label, values in by_seed.items()}
    return Blocks(tuple(by_block), scores, by_seed)


def _average_ranks(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    from scipy.stats import rankdata

    ranks = rankdata([[-value for value in values] for values in scores.values()], axis=0)
    return {name: float(row.mean()) for name, row in zip(scores, ranks, strict=True)}


def _friedman_p(scores: Sequence[Sequence[float]]) -> float:
    from scipy.stats import friedmanchisquare

    with warnings.catch_warnings():  # if all scores are tied the statistic is 0/0: no difference
        warnings.simplefilter("ignore", RuntimeWarning)
        p_value = float(friedmanchisquare(*scores).pvalue)
    return 1.0 if math.isnan(p_value) else p_value


def _cliques(
    ordered: Sequence[str], averages: Mapping[str, float], difference: float
) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of neighbouring ranks whose ends do not differ by the critical difference."""
    found: list[tuple[str, ...]] = []
    reached = 0
    for first, name in enumerate(ordered):
        near = [other for other in ordered[first:] if averages[other] - averages[name] < difference]
        if len(near) > 1 and first + len(near) > reached:
            found.append(tuple(near))
            reached = first + len(near)
    return tuple(found)
