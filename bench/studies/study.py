"""Tunes all methods of some suites with equal budgets, runs tuned and default rows, and reports on them.

Nothing is remembered but what searches and runs leave on disk, so a second call does only what is missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.observer import Observer
from bench.records.files import check_writable
from bench.records.run_folder import MERGED
from bench.runs.run import run
from bench.search.checks import check_search
from bench.search.plan import Search, searches_of
from bench.search.shared import tune_shared
from bench.search.tune import TuneOutcome, tune
from bench.search.tuned import Tuned
from bench.studies.preview import in_words
from bench.studies.request import StudyRequest
from reports.combine.tracks import shared_track
from reports.report import FORMATS, RankingReport, Report


@dataclass(frozen=True)
class SuiteOutcome:
    """How far one suite has come."""

    suite: str
    tuned: Sequence[Tuned]
    problems: Sequence[str]
    """One sentence per search that has not spent its budget, and per cell that failed."""
    report: Report | None = None
    """None as long as a search is not complete."""
    files: Sequence[Path] = ()


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
    _check(request, observer, extract=True)
    seconds = request.seconds()
    deadline = None if seconds is None else time.monotonic() + seconds
    tuned: dict[str, TuneOutcome] = {}
    for place, suite in enumerate(request.loaded):
        observer.say(f"study, suite {place + 1} of {len(request.loaded)}: {suite.suite}")
        share = _share(deadline, len(request.loaded) - place)
        tuned[suite.suite] = tune(request.tuning(suite, share), observer)
    shared = (
        tune_shared([request.tuning(suite) for suite in request.loaded], observer) if request.shared else None
    )
    outcomes: list[SuiteOutcome] = []
    for suite in request.loaded:
        found = tuned[suite.suite]
        if problems := [*found.incomplete, *(shared.incomplete if shared else ())]:
            outcomes.append(SuiteOutcome(suite.suite, found.tuned, problems))
            continue
        done = run(request.run(suite), observer)
        for warning in done.warnings:
            observer.say(f"warning: {warning}")
        outcomes.append(SuiteOutcome(suite.suite, found.tuned, done.problems, done.report, done.files))
    runs = [outcome.report.run for outcome in outcomes if outcome.report]
    ranking = RankingReport(runs)
    files = [file for outcome in outcomes for file in outcome.files]
    if len(runs) > 1:
        files += ranking.write(FORMATS, request.out.absolute() / MERGED)
        if shared:
            track = RankingReport([shared_track(each) for each in runs])
            files += track.write(FORMATS, request.out.absolute() / MERGED / "shared")
    return StudyOutcome(outcomes, ranking, files)


def preview(request: StudyRequest, observer: Observer) -> None:
    """Check everything that a study checks, and say what it would do; nothing is written or extracted."""
    for line in in_words(request, _check(request, observer, extract=False)):
        observer.say(line)


def _check(request: StudyRequest, observer: Observer, extract: bool) -> dict[str, list[Search]]:
    """Find mistakes and missing data of all suites before the first one begins; the searches by suite."""
    check_writable(request.out.absolute())
    found = {}
    for suite in request.loaded:
        asked = request.tuning(suite)
        found[suite.suite] = searches_of(asked)
        for search in found[suite.suite]:
            check_search(search, asked, observer.say, extract)
    return found


def _share(deadline: float | None, suites: int) -> str | None:
    """The time that is left for searches, in equal parts."""
    if deadline is None:
        return None
    return f"{max(1.0, (deadline - time.monotonic()) / suites):.0f}s"
