"""How much a search may spend, and when it has to give up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.search.journal import Journal, Trial
    from bench.search.plan import Search

DIED = "process died"
"""The kind of failure that is not the configuration's fault."""


@dataclass(frozen=True)
class Limits:
    trials: int
    by_rounds: bool
    """Early stops make room for further trials, until `trials` full ones would have been paid for."""
    max_failures: int


class Budget:
    """What may still be started."""

    def __init__(self, search: Search, limits: Limits) -> None:
        self._search, self._limits = search, limits

    def paid(self, journal: Journal) -> list[Trial]:
        """The trials that count; an earlier command with a larger budget may have left more."""
        if not self._limits.by_rounds:
            return list(journal.trials[: self._limits.trials])
        promised = accumulate(
            trial.rounds if trial.outcome else self._search.cost for trial in journal.trials
        )
        total = self._limits.trials * self._search.cost
        return [trial for trial, cost in zip(journal.trials, promised, strict=True) if cost <= total]

    def left(self, journal: Journal) -> bool:
        """Whether one more trial can be paid for, with all open ones running to their end."""
        paid = self.paid(journal)
        if len(paid) < len(journal.trials):
            return False
        if not self._limits.by_rounds:
            return len(paid) < self._limits.trials
        promised = sum(trial.rounds if trial.outcome else self._search.cost for trial in paid)
        return promised + self._search.cost <= self._limits.trials * self._search.cost

    def complete(self, journal: Journal) -> bool:
        """Whether the search has had all it may have, or there is nothing left to try."""
        if any(trial.outcome is None for trial in self.paid(journal)):
            return False
        trials = journal.trials
        return not self.left(journal) or self._search.suggestion(len(trials), trials) is None


def repeated_failure(journal: Journal, limits: Limits, lost: int = 0) -> str | None:
    """The kind of failure that has happened too often in this command, if there is one."""
    failed = [trial for trial in journal.trials if trial.outcome == "failed"]
    kinds = Counter(trial.kind_of_failure for trial in failed if trial.number not in journal.failed_before)
    kinds.update({DIED: lost})
    return next((kind for kind, count in kinds.items() if count >= limits.max_failures), None)
