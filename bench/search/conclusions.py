"""What is made of a search: its report, the tuned values, and its figures in MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from bench.records.provenance import commit
from bench.scheduling.progress import Observer
from bench.search.budget import Budget
from bench.search.plan import Search
from bench.search.report import write_report
from bench.search.request import TuneRequest
from bench.search.result import outcome_of
from bench.search.tracking import SearchTracker
from bench.search.tuned import Tuned, write_tuned
from bench.tracking.background import Background
from bench.tracking.tracker import TrackingError


class Conclusions:
    """Makes the files of searches in a thread of its own, while others still run."""

    def __init__(
        self, request: TuneRequest, tracker: SearchTracker, background: Background, observer: Observer
    ) -> None:
        self._request, self._observer = request, observer
        self._tracker, self._background = tracker, background
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._begun: dict[Path, Future[Tuned | None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)

    def begin(self, search: Search, checksum: str) -> None:
        """The search is over; `checksum` is that of its data."""
        self._begun[search.directory] = self._pool.submit(self._conclude, search, checksum)

    def of(self, search: Search, checksum: str) -> Tuned | None:
        """What was chosen, of a search that is over or was cut short; None if nothing can be yet."""
        if search.directory not in self._begun:
            self.begin(search, checksum)
        return self._begun[search.directory].result()

    def _conclude(self, search: Search, checksum: str) -> Tuned | None:
        journal, limits = search.journal(), self._request.limits()
        trials = Budget(search, limits).paid(journal)
        if not any(trial.outcome for trial in trials):
            return None
        files = write_report(search, trials)
        tuned = outcome_of(search, journal, limits, checksum, commit())
        figures: Mapping[str, float] = {}
        if tuned is None:
            self._observer.say(
                f"{search.method}: the default has no score yet, so there is nothing to compare with"
            )
        else:
            files.append(write_tuned(self._request.tuned_dir, tuned))
            figures = {
                "best_validation": tuned.best.validation,
                "default_validation": tuned.default.validation,
            }
        self._background.submit(self._log, search, figures, files)  # which has logged its trials by then
        return tuned

    def _log(self, search: Search, figures: Mapping[str, float], files: Sequence[Path]) -> None:
        try:
            self._tracker.log_search(search, figures, files)
        except TrackingError as error:
            self._observer.say(f"warning: the search of {search.method} is not in MLflow: {error}")
