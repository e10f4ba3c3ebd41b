"""How a trial ended, from the records of its cells."""

from __future__ import annotations

from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.trial import DivergedError


def settle(search: Search, journal: Journal) -> None:
    """Write down the ends that a killed driver had no time to."""
    for trial in journal.open:
        if search.is_done(trial):
            settle_done(search, journal, trial)


def settle_done(search: Search, journal: Journal, trial: Trial) -> Trial:
    rounds = rounds_of(search, trial)
    if reason := reason_of(search, trial):
        return journal.ended(trial.number, "failed", None, rounds, reason)
    return journal.ended(trial.number, "finished", search.history(trial)[-1][1], rounds)


def reason_of(search: Search, trial: Trial) -> str:
    """Why it failed, as its process wrote it."""
    reason = next(filter(None, (folder.failure() for folder in search.folders(trial))), "")
    return reason.replace(f"{DivergedError.__name__}:", "diverged:", 1)


def rounds_of(search: Search, trial: Trial) -> int:
    return sum(folder.rounds_done() for folder in search.folders(trial))
