"""What a search has come to: the ends of its trials, the chosen configuration, its files, and MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

from bench.observer import Observer
from bench.records.provenance import commit
from bench.search.bounds import at_bound
from bench.search.budget import Budget, Limits
from bench.search.halving import DEFAULT
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.report import write_report
from bench.search.request import AUTO, TuneRequest
from bench.search.selection import Candidate, Selection, select
from bench.search.suggest import sampler
from bench.search.tracking import SearchTracker
from bench.search.trial import DivergedError
from bench.search.tuned import How, Scored, Selected, Spent, Tuned, write_tuned
from bench.suite.planning import plan_cells
from bench.tracking.background import Background
from bench.tracking.tracker import TrackingError

RUNNER_UPS = 5
PACKAGES = ("optuna", "ray", "torch", "numpy")
"""Whose versions may change what is tried and how it scores."""


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


@dataclass(frozen=True)
class DataFacts:
    """What the outcome of a search says about its data."""

    checksum: str
    samples: float
    """The held-out samples that a score is worth (see `effective_samples`)."""


def selection_of(search: Search, journal: Journal, limits: Limits, data: DataFacts) -> Selection | None:
    """What is chosen so far; None as long as the default has no score."""
    return select(search, Budget(search, limits).paid(journal), data.samples, limits.auto_seeds)


def outcome_of(
    search: Search, journal: Journal, limits: Limits, data: DataFacts, commit: str
) -> Tuned | None:
    """The chosen configuration and what was spent; None as long as the default has no score."""
    budget = Budget(search, limits)
    trials = budget.paid(journal)
    selection = selection_of(search, journal, limits, data)
    if selection is None:
        return None
    ranking = selection.candidates
    default = next(each for each in ranking if each.trial.number == DEFAULT)
    ends = [trial.outcome for trial in trials]
    further = (selection.seeds - search.suite.seeds) * len(ranking) if limits.auto_seeds else 0
    return Tuned(
        suite=search.suite.suite,
        suite_version=search.suite.version,
        method=search.method,
        row=search.row,
        selected_on="validation",
        held_out=search.suite.training.validation,
        best=_scored(ranking[0]),
        default=_scored(default),
        at_bound=at_bound(search.space, search.method, ranking[0].trial.values),
        runner_ups=[_scored(each) for each in ranking[1 : 1 + RUNNER_UPS]],
        budget=Spent(
            trials=limits.trials,
            unit="rounds" if limits.by_rounds else "trials",
            rounds=search.rounds,
            seeds=AUTO if limits.auto_seeds else search.suite.seeds,
            complete=budget.complete(journal) and selection.stands,
            finished=ends.count("finished"),
            stopped=ends.count("stopped"),
            failed=ends.count("failed"),
            rounds_spent=sum(trial.rounds for trial in trials) + further * search.cost,
        ),
        selection=Selected(
            seeds=selection.seeds, standard_error=selection.standard_error, spread=selection.spread
        )
        if limits.auto_seeds
        else None,
        how=How(
            search=search.algorithm,
            scheduler=search.scheduler,
            seed=search.seed,
            space=search.space.name,
            sweep={key: list(values) for key, values in search.sweeps.items()},
            keys=list(search.space.domains) if search.keys_chosen else None,
            space_hash=(search.unwidened or search.space).digest,
            widened=journal.widened,
            id=search.identity,
            sampler=sampler(search.algorithm),
            versions={package: version(package) for package in PACKAGES},
        ),
        settings=sorted({cell.config.setting for cell in plan_cells(search.suite, search.data_root)}),
        data_checksum=data.checksum,
        commit=commit,
    )


def _scored(candidate: Candidate) -> Scored:
    return Scored(
        trial=candidate.trial.number,
        validation=candidate.validation,
        set=candidate.trial.values,
        by_setting=dict(candidate.by_setting),
    )


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

    def begin(self, search: Search, data: DataFacts) -> None:
        """Conclude a search that is over."""
        self._begun[search.directory] = self._pool.submit(self._conclude, search, data)

    def begin_if_chosen(self, search: Search, data: DataFacts) -> None:
        """Conclude a search whose trials have ended, unless its best ones have to run with further seeds."""
        selection = selection_of(search, search.journal(), self._request.limits(), data)
        if selection is None or selection.stands:
            self.begin(search, data)

    def of(self, search: Search, data: DataFacts) -> Tuned | None:
        """What was chosen in a search that is over or was cut short; None if nothing can be chosen yet."""
        if search.directory not in self._begun:
            self.begin(search, data)
        return self._begun[search.directory].result()

    def _conclude(self, search: Search, data: DataFacts) -> Tuned | None:
        journal, limits = search.journal(), self._request.limits()
        trials = Budget(search, limits).paid(journal)
        if not any(trial.outcome for trial in trials):
            return None
        files = write_report(search, trials)
        tuned = outcome_of(search, journal, limits, data, commit())
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
