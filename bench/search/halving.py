"""ASHA's rule for configurations that reach its rungs together: of every three, the best one continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

REDUCTION = 3
"""Of this many trials that reach a rung, one continues."""


def rungs(grace: int, rounds: int) -> list[int]:
    """The rounds at which trials are compared."""
    found = []
    while grace < rounds:
        found.append(grace)
        grace *= REDUCTION
    return found


@dataclass(frozen=True)
class Halving:
    """What was measured at each rung, and who is stopped there."""

    measured: dict[int, list[float]] = field(default_factory=dict)
    """Rung that is still ahead → the accuracies of trials that reached it before."""

    @classmethod
    def after(cls, grace: int, rounds: int, histories: Sequence[Sequence[tuple[int, float]]]) -> Halving:
        """With what earlier trials measured: pairs of round and accuracy."""
        found: dict[int, list[float]] = {rung: [] for rung in rungs(grace, rounds)}
        for history in histories:
            for number, accuracy in history:
                if number in found:
                    found[number].append(accuracy)
        return cls(found)

    def stopped(self, rung: int, accuracies: Mapping[int, float]) -> list[int]:
        """Those of the trials at a rung that are not among the best third; trial 0 always continues."""
        known = [*self.measured.pop(rung), *accuracies.values()]
        least = np.percentile(known, 100 * (1 - 1 / REDUCTION))
        return [number for number, accuracy in accuracies.items() if accuracy < least and number != 0]
