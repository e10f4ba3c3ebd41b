"""How much a search may spend, and when it gives up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    auto_seeds: bool = False
    """Whether the best configurations get more seeds than the others (see `selection`)."""


class Budget:
    """Which trials are paid for, and whether more can be started."""

    def __init__(self, search: Search, limits: Limits) -> None:
        self._search, self._by_rounds = search, limits.by_rounds
        self._full = search.cost if limits.by_rounds else 1
        self._total = limits.trials * self._full

    def paid(self, journal: Journal) -> list[Trial]:
        """The trials within the budget; an earlier command with a larger one may have left more."""
        carried, charged = self._parted(journal)
        promised = accumulate(map(self._cost, charged))
        return [
            *carried,
            *(trial for trial, cost in zip(charged, promised, strict=True) if cost <= self._total),
        ]

    def left(self, journal: Journal) -> bool:
        """Whether one more trial can be paid for, if all open ones run to the end."""
        return sum(map(self._cost, self._parted(journal)[1])) + self._full <= self._total

    def expected(self) -> int:
        """How many trials there will be, if none is stopped early."""
        trials, there = self._search.carried + self._total // self._full, self._search.count()
        return trials if there is None else min(trials, there)

    def _parted(self, journal: Journal) -> tuple[Sequence[Trial], Sequence[Trial]]:
        """The trials from before ranges were made wider, and those that the budget is for."""
        return journal.trials[: self._search.carried], journal.trials[self._search.carried :]

    def _cost(self, trial: Trial) -> int:
        return trial.rounds if self._by_rounds and trial.outcome else self._full

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
