"""What an observer is told while the trials of a search run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from bench.scheduling.progress import Item, Observer, View, Words
from bench.search.budget import Limits
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.tracking import SearchTracker
from bench.tracking.background import Background


def search_view(
    search: Search, journal: Journal, limits: Limits, observer: Observer
) -> AbstractContextManager[View]:
    """The view of the trials that are still to come."""
    ended = sum(trial.outcome is not None for trial in journal.trials)
    there = search.count()
    total = limits.trials if there is None else min(limits.trials, there)
    names = range(max(total, len(journal.trials)))
    items = [
        _item(search, number)
        for number in names
        if number >= len(journal.trials) or journal[number].outcome is None
    ]
    return observer.view(f"tuning {search.method}", items, ended, Words("trials", "validation"))


def _item(search: Search, number: int) -> Item:
    return Item(str(number), f"{search.method} trial {number}", search.rounds)


class SearchWatcher:
    """Shows what happens and has ended trials logged."""

    def __init__(self, search: Search, view: View, tracker: SearchTracker, background: Background) -> None:
        self._search, self._view = search, view
        self._tracker, self._background = tracker, background

    def advanced(self, number: int, rounds: int, validation: float | None) -> None:
        self._view.advanced(self._known(number), rounds, validation)

    def ended(self, trial: Trial) -> None:
        key = self._known(trial.number)
        if trial.outcome == "failed":
            self._view.failed(key, f"{trial.reason} ({settings_text(trial.values)})")
        else:
            early = (
                f"stopped after {self._search.history(trial)[-1][0]} rounds "
                if trial.outcome == "stopped"
                else ""
            )
            self._view.advanced(key, self._search.rounds, trial.validation)
            self._view.finished(key, f"{early}({settings_text(trial.values)})")
        self._background.submit(self._tracker.log_trial, self._search, trial)

    def lost(self, number: int, reason: str) -> None:
        self._view.failed(self._known(number), reason)

    def _known(self, number: int) -> str:
        """Early stops may have paid for more trials than the view was made for."""
        self._view.expect(_item(self._search, number))
        return str(number)


def settings_text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items()) or "the default"
