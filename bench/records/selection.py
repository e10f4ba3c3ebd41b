"""Which round of a run is the best on validation, as early stopping sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Best:
    """The best round so far, and how many measurements have passed since."""

    round: int
    validation: float
    since: int


def best_round(measured: Mapping[int, float], min_delta: float) -> Best | None:
    """The first round that no later one surpasses by more than `min_delta`; `measured`: round → accuracy."""
    best: Best | None = None
    for number, value in measured.items():
        if best is None or value > best.validation + min_delta:
            best = Best(number, value, 0)
        else:
            best = Best(best.round, best.validation, best.since + 1)
    return best
