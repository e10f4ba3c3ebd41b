"""How well a configuration did, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean


def mean_history(cells: Sequence[Mapping[int, float]]) -> list[tuple[int, float]]:
    """Round → mean validation accuracy, of the rounds at which all cells were measured."""
    common = set.intersection(*(set(cell) for cell in cells)) if cells else ()
    return [(number, fmean(cell[number] for cell in cells)) for number in sorted(common)]
