"""Tunes all methods of some suites with equal budgets, runs tuned and default rows, and reports on them.

Nothing is remembered but what searches and runs leave on disk, so a second call does only what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.records.files import check_writable
from bench.records.reader import load_run
from bench.runs.checks import check_before_start
from bench.runs.drive import drive
from bench.runs.preview import preview
from bench.scheduling.progress import Observer
from bench.search.checks import check_search
from bench.search.tune import tune
from bench.search.tuned import Tuned
from bench.studies.request import StudyRequest
from bench.suite.model import Suite
from bench.tracking.tracker import Tracker, TrackingError
from bench.words import counted
from reports.report import FORMATS, RankingReport, Report

RANKING_FOLDER = "merged"
"""Below the folder of the runs: what is over several suites."""


@dataclass(frozen=True)
class SuiteOutcome:
    """How far one suite has come."""

    suite: str
    tuned: Sequence[Tuned]
    problems: Sequence[str]
    """One sentence per search that has not spent its budget, and per cell that failed."""
    report: Report | None
    """None as long as a search is not complete."""


@dataclass(frozen=True)
class StudyOutcome:
    suites: Sequence[SuiteOutcome]
    ranking: RankingReport
    files: Sequence[Path]

    @property
    def complete(self) -> bool:
        return not any(outcome.problems for outcome in self.suites)


def study(request: StudyRequest, observer: Observer) -> StudyOutcome:
    """Do what is missing, suite by suite; one that does not come to its end does not stop the others."""
    check(request)
    seconds = request.seconds()
    deadline = None if seconds is None else time.monotonic() + seconds
    outcomes: list[SuiteOutcome] = []
    files: list[Path] = []
    for place, suite in enumerate(request.loaded):
        observer.say(f"study, suite {place + 1} of {len(request.loaded)}: {suite.suite}")
        found = tune(request.tuning(suite, _share(deadline, len(request.loaded) - place)), observer)
        if found.incomplete:
            outcomes.append(SuiteOutcome(suite.suite, found.tuned, found.incomplete, None))
            continue
        report, problems, written = _run(request, suite, observer)
        outcomes.append(SuiteOutcome(suite.suite, found.tuned, problems, report))
        files += written
    runs = [outcome.report.run for outcome in outcomes if outcome.report]
    ranking = RankingReport(runs)
    if len(runs) > 1:
        files += ranking.write(FORMATS, request.out.absolute() / RANKING_FOLDER)
    return StudyOutcome(outcomes, ranking, files)


def check(request: StudyRequest) -> None:
    """Find mistakes and missing data of all suites before the first one begins."""
    check_writable(request.out.absolute())
    for suite in request.loaded:
        asked = request.tuning(suite)
        for search in asked.searches():
            check_search(search, asked.trials, asked.conditions().data_root)


def _share(deadline: float | None, suites: int) -> str | None:
    """The time that is left for searches, in equal parts."""
    if deadline is None:
        return None
    return f"{max(1.0, (deadline - time.monotonic()) / suites):.0f}s"


def _run(request: StudyRequest, suite: Suite, observer: Observer) -> tuple[Report, list[str], list[Path]]:
    """Run what is missing of a suite; its report, what failed, and the files written."""
    asked = request.run(suite)
    plan, conditions = asked.plan(), asked.conditions()
    if pending := plan.pending():
        asked.begin_ray()
    for line in preview(plan, pending, conditions, check_before_start(pending, conditions, observer.say)):
        observer.say(line)
    tracker = Tracker(asked.tracking_uri, asked.out.absolute())
    drive(plan, conditions, asked.resources() if pending else None, tracker, observer, asked.address)
    report = Report(load_run(plan.folder.path))
    files = report.write(FORMATS, plan.folder.path)
    try:
        tracker.log_suite(plan.folder.path)
    except TrackingError as error:
        observer.say(f"warning: the tables are not in MLflow: {error}")
    failed = plan.failures()
    problems = [f"failed: {plan.folder.path / directory}: {reason}" for directory, reason in failed.items()]
    if failed:
        problems.append(
            f"{len(failed)} of {counted(len(plan.cells), 'cell')} of {suite.suite} failed; run the same "
            "command again to retry"
        )
    return report, problems, files
