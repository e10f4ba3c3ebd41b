"""Runs the searches of a request one after the other, and writes what they found."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.contract.standing import with_methods
from bench.engine.conditions import Conditions
from bench.engine.executors import with_stacks
from bench.records.files import check_writable
from bench.records.lock import alone
from bench.records.provenance import commit
from bench.records.run_folder import RunFolder
from bench.scheduling.progress import Observer
from bench.search.budget import Budget, Limits, repeated_failure
from bench.search.endings import settle
from bench.search.journal import Journal
from bench.search.plan import Search, check_search
from bench.search.preview import preview
from bench.search.progress import SearchWatcher, search_view
from bench.search.report import write_report
from bench.search.request import TuneRequest
from bench.search.result import outcome_of
from bench.search.tracking import SearchTracker
from bench.search.tuned import Tuned, write_tuned
from bench.tracking.background import Background
from bench.tracking.tracker import TrackingError

if TYPE_CHECKING:  # importing Ray costs seconds, which a search with nothing to do should not pay
    from bench.scheduling.resources import Resources


@dataclass(frozen=True)
class TuneOutcome:
    """What a request has come to."""

    tuned: Sequence[Tuned]
    """What was chosen, per method; of a method whose default has no score yet there is nothing."""
    incomplete: Sequence[str]
    """One sentence per search that has not spent its budget."""
    searches: Sequence[Search]
    explore: str
    """How to see the searches in MLflow."""


def tune(request: TuneRequest, observer: Observer) -> TuneOutcome:
    """Run what is missing of every search; a kill loses only the rounds since the last checkpoints."""
    searches = request.searches()
    conditions = with_methods(request.conditions(), {search.method for search in searches})
    check_writable(request.out.absolute())
    checksums, stacks = {}, {}
    for search in searches:
        assembled = check_search(search, request.trials, conditions.data_root)
        checksums[search.method] = assembled.fingerprints.data_checksum
        stacks[search.method] = with_stacks(conditions, assembled.problem)
    for line in preview(searches, request.limits()):
        observer.say(line)
    tracker = SearchTracker(request.tracking_uri, request.out.absolute())
    seconds = request.seconds()
    deadline = None if seconds is None else time.monotonic() + seconds
    tuned, incomplete = [], []
    for position, search in enumerate(searches):
        share = _share(deadline, len(searches) - position)
        with alone(search.directory, "bench tune"):
            problem = _run(search, request, request.limits(share), stacks[search.method], tracker, observer)
            found = _conclude(search, request, tracker, observer, checksums[search.method])
        tuned += [found] if found else []
        incomplete += [problem] if problem else []
    return TuneOutcome(tuned, incomplete, searches, tracker.ui_command())


def _share(deadline: float | None, searches: int) -> float | None:
    """The time that is left, in equal parts."""
    return None if deadline is None else max(1.0, (deadline - time.monotonic()) / searches)


def _run(
    search: Search,
    request: TuneRequest,
    limits: Limits,
    conditions: Conditions,
    tracker: SearchTracker,
    observer: Observer,
) -> str | None:
    """Run what is missing; returns what keeps the search from being complete, if anything does."""
    RunFolder(search.directory).remove_scratch()
    journal = search.journal()
    settle(search, journal)
    with Background(observer.say, "trials") as background:
        for trial in journal.trials:
            if trial.outcome:
                background.submit(tracker.log_trial, search, trial)
        lost = 0
        if not Budget(search, limits).complete(journal):
            from bench.scheduling.cluster import start_ray
            from bench.search.driver import run_search

            start_ray(request.address)
            resources, at_once = _resources(request, observer)
            with search_view(search, journal, limits, observer) as view:
                watcher = SearchWatcher(search, view, tracker, background)
                joined = request.address is not None
                lost = run_search(search, journal, limits, conditions, resources, at_once, watcher, joined)
    return _incompleteness(search, journal, limits, lost)


def _resources(request: TuneRequest, observer: Observer) -> tuple[Resources, int]:
    """The resources of a trial, and how many trials run at once."""
    from bench.scheduling.cluster import nodes, settled

    resources = settled(request.resources())
    there = nodes()
    observer.say(resources.in_words(there))
    return resources, resources.at_once(there)


def _incompleteness(search: Search, journal: Journal, limits: Limits, lost: int) -> str | None:
    if kind := repeated_failure(journal, limits, lost):
        return (
            f"the search of {search.method} was ended: {limits.max_failures} trials failed with '{kind}' "
            f"(see {search.directory / 'trials.jsonl'}); mend the cause and run the same command to resume"
        )
    if Budget(search, limits).complete(journal):
        return None
    ended = sum(trial.outcome is not None for trial in journal.trials)
    died = f", {lost} lost their process" if lost else ""
    return (
        f"the search of {search.method} is not complete ({ended} trials ended{died}); run the same command "
        "to resume"
    )


def _conclude(
    search: Search, request: TuneRequest, tracker: SearchTracker, observer: Observer, checksum: str
) -> Tuned | None:
    """Write the files of the search, as far as it has come."""
    journal, limits = search.journal(), request.limits()
    trials = Budget(search, limits).paid(journal)
    if not any(trial.outcome for trial in trials):
        return None
    files = write_report(search, trials)
    tuned = outcome_of(search, journal, limits, checksum, commit())
    figures: Mapping[str, float] = {}
    if tuned is None:
        observer.say(f"{search.method}: the default has no score yet, so there is nothing to compare with")
    else:
        files.append(write_tuned(request.tuned_dir, tuned))
        figures = {"best_validation": tuned.best.validation, "default_validation": tuned.default.validation}
    try:
        tracker.log_search(search, figures, files)
    except TrackingError as error:
        observer.say(f"warning: the search of {search.method} is not in MLflow: {error}")
    return tuned
