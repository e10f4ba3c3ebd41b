"""ASHA, asynchronous successive halving (Li et al., 2020): at certain rounds only the best trials continue.

All that decides about early stops is here, both for trials that Ray Tune reports one by one and for trials
that one process trains together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

REDUCTION = 3
"""One in this many trials continues at a rung; the next rung comes after this many times the rounds."""
FIRST = 1
"""The measurement of a trial at which it may be stopped first."""
DEFAULT = 0
"""The number of the trial that is never stopped, since all others are compared with its final score."""


def rungs(every: int, rounds: int) -> list[int]:
    """The rounds after which trials are compared; `every`: rounds between two measurements of a trial."""
    found = []
    rung = FIRST * every
    while rung < rounds:
        found.append(rung)
        rung *= REDUCTION
    return found


class Halving:
    """The accuracies of a search's trials at each rung, and which trials are stopped there."""

    def __init__(self, every: int, rounds: int) -> None:
        self._reached: dict[int, dict[int, float]] = {rung: {} for rung in rungs(every, rounds)}
        """Rung → trial → accuracy."""

    def record(self, trial: int, history: Iterable[tuple[int, float]]) -> None:
        """Add a trial's earlier measurements, pairs of round and accuracy, without a decision."""
        for number, accuracy in history:
            if number in self._reached:
                self._reached[number][trial] = accuracy

    def stops(self, trial: int, number: int, accuracy: float) -> bool:
        """Whether to stop a trial after this round, compared with those that reached the rung before it.

        The first one at a rung continues. A trial is judged once at each rung.
        """
        reached = self._reached.get(number)
        if reached is None or trial in reached:
            return False
        earlier = list(reached.values())
        reached[trial] = accuracy
        return bool(earlier) and _is_stopped(trial, accuracy, earlier)

    def stopped(self, number: int, accuracies: Mapping[int, float]) -> list[int]:
        """Which of the trials that reach this round together to stop, compared with each other, too."""
        reached = self._reached.get(number)
        if reached is None:
            return []
        new = {trial: accuracy for trial, accuracy in accuracies.items() if trial not in reached}
        reached |= new
        return [trial for trial in new if _is_stopped(trial, new[trial], list(reached.values()))]


def _is_stopped(trial: int, accuracy: float, peers: Sequence[float]) -> bool:
    return trial != DEFAULT and accuracy < float(np.percentile(peers, 100 * (1 - 1 / REDUCTION)))
