"""What a search has come to: the ends of its trials, the chosen configuration, its files, and MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from bench.observer import Observer
from bench.records.provenance import commit
from bench.search.budget import Budget, Limits
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.report import write_report
from bench.search.request import TuneRequest
from bench.search.tracking import SearchTracker
from bench.search.trial import DivergedError
from bench.search.tuned import How, Scored, Spent, Tuned, write_tuned
from bench.suite.planning import plan_cells
from bench.tracking.background import Background
from bench.tracking.tracker import TrackingError

RUNNER_UPS = 5


def settle(search: Search, journal: Journal) -> None:
    """Write down the ends of trials that a killed driver had no time to."""
    for trial in journal.open:
        if search.is_done(trial):
            write_end(search, journal, trial)


def write_end(search: Search, journal: Journal, trial: Trial, failed: bool = False) -> Trial | None:
    """Write down how a trial ended, from its cells' records.

    None if it was cut off before its first measurement: it stays open.
    """
    rounds = sum(folder.rounds_done() for folder in search.folders(trial))
    done, reason = search.is_done(trial), failure_of(search, trial)
    if failed or (done and reason):
        return journal.ended(trial.number, "failed", None, rounds, reason)
    history = search.history(trial)
    if not done and not history:
        return None
    scores = search.scores(trial)
    return journal.ended(
        trial.number,
        "finished" if done else "stopped",
        history[-1][1],
        rounds,
        by_setting=scores if len(scores) > 1 else None,
    )


def failure_of(search: Search, trial: Trial) -> str:
    """Why a trial failed, as its process recorded it; empty if it did not."""
    reason = next(filter(None, (folder.failure() for folder in search.folders(trial))), "")
    return reason.replace(f"{DivergedError.__name__}:", "diverged:", 1)


def outcome_of(search: Search, journal: Journal, limits: Limits, checksum: str, commit: str) -> Tuned | None:
    """The chosen configuration and what was spent; None as long as the default has no score."""
    budget = Budget(search, limits)
    trials = budget.paid(journal)
    ranking = best_first(trials)
    default = next((trial for trial in ranking if trial.number == 0), None)
    if default is None:
        return None
    ends = [trial.outcome for trial in trials]
    return Tuned(
        suite=search.suite.suite,
        suite_version=search.suite.version,
        method=search.method,
        row=search.row,
        selected_on="validation",
        held_out=search.suite.training.validation,
        best=_scored(ranking[0]),
        default=_scored(default),
        runner_ups=[_scored(trial) for trial in ranking[1 : 1 + RUNNER_UPS]],
        budget=Spent(
            trials=limits.trials,
            unit="rounds" if limits.by_rounds else "trials",
            rounds=search.rounds,
            seeds=search.suite.seeds,
            complete=budget.complete(journal),
            finished=ends.count("finished"),
            stopped=ends.count("stopped"),
            failed=ends.count("failed"),
            rounds_spent=sum(trial.rounds for trial in trials),
        ),
        how=How(
            search=search.algorithm,
            scheduler=search.scheduler,
            seed=search.seed,
            space=search.space.name,
            sweep={key: list(values) for key, values in search.sweeps.items()},
            keys=list(search.space.domains) if search.keys_chosen else None,
            space_hash=search.space.digest,
            id=search.identity,
        ),
        settings=sorted({cell.config.setting for cell in plan_cells(search.suite, search.data_root)}),
        data_checksum=checksum,
        commit=commit,
    )


def best_first(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that ran all rounds, best validation first; the earlier one where two are equal."""
    finished = [trial for trial in trials if trial.outcome == "finished"]
    return sorted(finished, key=lambda trial: (-(trial.validation or 0.0), trial.number))


def _scored(trial: Trial) -> Scored:
    assert trial.validation is not None
    scores = dict(trial.by_setting)
    return Scored(trial=trial.number, validation=trial.validation, set=trial.values, by_setting=scores)


class Conclusions:
    """Makes the files of finished searches in a thread, while other searches still run."""

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
        """Conclude a search that is over; `checksum` is that of its data."""
        self._begun[search.directory] = self._pool.submit(self._conclude, search, checksum)

    def of(self, search: Search, checksum: str) -> Tuned | None:
        """What was chosen in a search that is over or was cut short; None if nothing can be chosen yet."""
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
                f"{search.row}: the default has no score yet, so there is nothing to compare with"
            )
        else:
            files.append(write_tuned(self._request.tuned_dir, search.file_name, tuned))
            figures = {
                "best_validation": tuned.best.validation,
                "default_validation": tuned.default.validation,
            }
        self._background.submit(self._log, search, figures, files)  # its trials were submitted before
        return tuned

    def _log(self, search: Search, figures: Mapping[str, float], files: Sequence[Path]) -> None:
        try:
            self._tracker.log_search(search, figures, files)
        except TrackingError as error:
            self._observer.say(f"warning: the search of {search.row} is not in MLflow: {error}")
