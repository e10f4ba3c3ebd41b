"""What an observer is told while the trials of a search run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from bench.observer import Item, Observer, View, Words
from bench.search.budget import Budget, Limits
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.tracking import SearchTracker
from bench.tracking.background import Background


def searches_view(
    searches: Sequence[tuple[Search, Journal]], limits: Limits, observer: Observer
) -> AbstractContextManager[View]:
    """A view of the trials that are still to run."""
    items = [item for search, journal in searches for item in _to_come(search, journal, limits)]
    ended = sum(trial.outcome is not None for _, journal in searches for trial in journal.trials)
    (first, _), *others = searches
    title = f"tuning {len(searches)} methods" if others else f"tuning {first.method}"
    return observer.view(title, items, ended, Words("trials", "validation"))


def _to_come(search: Search, journal: Journal, limits: Limits) -> Iterator[Item]:
    for number in range(max(Budget(search, limits).expected(), len(journal.trials))):
        if number >= len(journal.trials) or journal[number].outcome is None:
            yield _item(search, number)


def _item(search: Search, number: int) -> Item:
    name = f"{search.row} trial {number}"
    return Item(name, name, search.rounds)


class SearchProgress:
    """Shows what happens to the trials of a search, and has ended ones logged in MLflow."""

    def __init__(
        self,
        search: Search,
        view: View,
        tracker: SearchTracker,
        background: Background,
        finish: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        """`finish` is called when the search is over, `say` with a sentence for the user."""
        self._search, self._view = search, view
        self._tracker, self._background = tracker, background
        self._finish, self.say = finish, say

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

    def over(self) -> None:
        self._finish()

    def _known(self, number: int) -> str:
        """The trial's key in the view; early stops may have paid for more trials than it was made with."""
        item = _item(self._search, number)
        self._view.expect(item)
        return item.key


def settings_text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items()) or "the default"
