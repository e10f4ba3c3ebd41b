"""ASHA, asynchronous successive halving (Li et al., 2020): at certain rounds only the best trials continue.

All that decides about early stops is here, both for trials that Ray Tune reports one by one and for trials
that one process trains together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

REDUCTION = 3
"""One in this many trials continues at a rung; the next rung comes after this many times the rounds."""
FIRST = 5
"""No trial is stopped before one in this many of its rounds is done."""
DEFAULT = 0
"""The number of the trial that is never stopped, since all others are compared with its final score."""


def rungs(every: int, rounds: int) -> list[int]:
    """The rounds after which trials are compared; `every`: rounds between two measurements of a trial."""
    found = []
    rung = every * math.ceil(rounds / (FIRST * every))
    while rung < rounds:
        found.append(rung)
        rung *= REDUCTION
    return found


def rule(every: int, rounds: int) -> str:
    """When trials are stopped, in words."""
    compared = rungs(every, rounds)
    if not compared:
        return "none, since a trial is measured only at its end"
    after = " and ".join(map(str, compared))
    return f"asha after round {after}, at least one trial in {REDUCTION} runs to the end"


class Halving:
    """The accuracies of a search's trials at each rung, and which trials are stopped there.

    At a rung, trials below the best third are stopped, but never so many that fewer than a third of all are
    left: a search whose early trials happen to be good would otherwise stop all later ones, and compare few
    configurations by their final score.
    """

    def __init__(self, every: int, rounds: int) -> None:
        self._reached: dict[int, dict[int, float]] = {rung: {} for rung in rungs(every, rounds)}
        """Rung → trial → accuracy."""
        self._stopped: set[int] = set()

    def record(self, trial: int, history: Iterable[tuple[int, float]], stopped: bool = False) -> None:
        """Add a trial's earlier measurements, pairs of round and accuracy, without a decision."""
        for number, accuracy in history:
            if number in self._reached:
                self._reached[number][trial] = accuracy
        if stopped:
            self._stopped.add(trial)

    def stops(self, trial: int, number: int, accuracy: float) -> bool:
        """Whether to stop a trial after this round, compared with those that reached the rung before it.

        The first one at a rung continues. A trial is judged once at each rung.
        """
        reached = self._reached.get(number)
        if reached is None or trial in reached:
            return False
        earlier = list(reached.values())
        reached[trial] = accuracy
        return bool(earlier) and bool(self._stop_worst({trial: accuracy}, earlier))

    def stopped(self, number: int, accuracies: Mapping[int, float]) -> list[int]:
        """Which of the trials that reach this round together to stop, compared with each other, too."""
        reached = self._reached.get(number)
        if reached is None:
            return []
        new = {trial: accuracy for trial, accuracy in accuracies.items() if trial not in reached}
        reached |= new
        return self._stop_worst(new, list(reached.values()))

    def _stop_worst(self, judged: Mapping[int, float], peers: Sequence[float]) -> list[int]:
        """The trials below the best third of their peers, as many as may be stopped, worst first."""
        least = float(np.percentile(peers, 100 * (1 - 1 / REDUCTION))) if peers else 0.0
        below = [trial for trial, accuracy in judged.items() if trial != DEFAULT and accuracy < least]
        below.sort(key=lambda trial: judged[trial])
        chosen = below[: self._allowed()]
        self._stopped.update(chosen)
        return sorted(chosen)

    def _allowed(self) -> int:
        """How many more may be stopped, so that a third of the trials at the rungs continue."""
        trials = {trial for reached in self._reached.values() for trial in reached}
        return max(0, len(trials) * (REDUCTION - 1) // REDUCTION - len(self._stopped))
