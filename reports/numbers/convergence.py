"""Whether a row was still improving when its training ended."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.records.reader import CellRecord
from reports.numbers.history import average_by_round
from reports.numbers.scores import RowScores

LAST_PART = 5
"""The last fifth of the rounds is judged."""
FEWEST_ROUNDS = 5
"""At least this many rounds are judged, which cells always evaluate at the end."""
FEWEST_POINTS = 3
SMALLEST_RISE = 0.1
"""In percentage points: a smaller rise would not change the table, however steady it is."""


@dataclass(frozen=True)
class Trend:
    """How AVG changes over the end of the training, in percentage points."""

    rise: float
    """Mean over the seeds."""
    error: float | None
    """The standard error over the seeds; None with one seed."""

    @property
    def still_improving(self) -> bool:
        return self.rise > max(SMALLEST_RISE, self.error or 0.0)


def trend(row: RowScores) -> Trend | None:
    """The trend of a row over its finished seeds; None if none was evaluated often enough to say."""
    rises = [rise for cell in row.cells if (rise := end_rise(cell, row.domains)) is not None]
    if not rises:
        return None
    error = statistics.stdev(rises) / math.sqrt(len(rises)) if len(rises) > 1 else None
    return Trend(statistics.fmean(rises), error)


def end_rise(cell: CellRecord, domains: Sequence[str]) -> float | None:
    """By how much the least-squares line through AVG rises over the last fifth of the rounds.

    The fifth is at least five rounds; None if fewer than three of its rounds were evaluated.
    """
    if cell.result is None:
        return None
    total = cell.result.rounds
    first = total - max(total // LAST_PART, FEWEST_ROUNDS)
    points = {at: value for at, value in average_by_round(cell, domains).items() if first < at <= total}
    if len(points) < FEWEST_POINTS:
        return None
    slope = statistics.linear_regression(list(points), list(points.values())).slope
    return slope * (max(points) - min(points))
