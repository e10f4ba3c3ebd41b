"""How much a search may spend, and when it gives up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

from bench.search.journal import Journal, Trial
from bench.search.plan import Search

DIED = "process died"
"""The kind of failure that is not the trial's fault."""


@dataclass(frozen=True)
class Limits:
    trials: int
    by_rounds: bool
    """The budget is the rounds of `trials` full trials, so that early stops pay for more trials."""
    max_failures: int


class Budget:
    """Which trials are paid for, and whether more can be started."""

    def __init__(self, search: Search, limits: Limits) -> None:
        self._search, self._limits = search, limits

    def paid(self, journal: Journal) -> list[Trial]:
        """The trials within the budget; an earlier command with a larger one may have left more."""
        if not self._limits.by_rounds:
            return list(journal.trials[: self._limits.trials])
        promised = accumulate(
            trial.rounds if trial.outcome else self._search.cost for trial in journal.trials
        )
        total = self._limits.trials * self._search.cost
        return [trial for trial, cost in zip(journal.trials, promised, strict=True) if cost <= total]

    def left(self, journal: Journal) -> bool:
        """Whether one more trial can be paid for, if all open ones run to the end."""
        paid = self.paid(journal)
        if len(paid) < len(journal.trials):
            return False
        if not self._limits.by_rounds:
            return len(paid) < self._limits.trials
        promised = sum(trial.rounds if trial.outcome else self._search.cost for trial in paid)
        return promised + self._search.cost <= self._limits.trials * self._search.cost

    def complete(self, journal: Journal) -> bool:
        """Whether the budget is spent or nothing is left to try, and no trial is open."""
        if any(trial.outcome is None for trial in self.paid(journal)):
            return False
        trials = journal.trials
        return not self.left(journal) or self._search.suggestion(len(trials), trials) is None


def repeated_failure(journal: Journal, limits: Limits, lost: int = 0) -> str | None:
    """The kind of failure that happened too often in this command; `lost`: processes that died."""
    failed = [trial for trial in journal.trials if trial.outcome == "failed"]
    kinds = Counter(trial.kind_of_failure for trial in failed if trial.number not in journal.failed_before)
    kinds.update({DIED: lost})
    return next((kind for kind, count in kinds.items() if count >= limits.max_failures), None)
