"""`bench run` with several suites: one after the other, then what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.observer import Observer
from bench.records.run_folder import MERGED
from bench.runs.plan import Plan, plan_of
from bench.runs.request import RunRequest
from bench.runs.run import RunOutcome, preview, run
from bench.text import counted
from reports.report import FORMATS, RankingReport, SweepReport


@dataclass(frozen=True)
class SuitesOutcome:
    """How far the runs of some suites have come."""

    runs: Sequence[RunOutcome]
    ranking: RankingReport
    files: Sequence[Path]
    """About all suites together."""


def run_suites(request: RunRequest, observer: Observer) -> SuitesOutcome:
    """Plan every suite before the first one begins, run what is missing, and report on all of them."""
    requests = request.each_suite()
    _say_total(requests, observer)
    outcomes = [run(each, observer) for each in requests]
    runs = [outcome.report.run for outcome in outcomes if outcome.report]
    ranking = RankingReport(runs)
    files: list[Path] = []
    if len(runs) > 1:
        target = request.out.absolute() / MERGED
        files = [*ranking.write(FORMATS, target), *SweepReport(runs).write(FORMATS, target)]
    return SuitesOutcome(outcomes, ranking, files)


def preview_suites(request: RunRequest, observer: Observer) -> None:
    """What every suite would do."""
    requests = request.each_suite()
    _say_total(requests, observer)
    for each in requests:
        preview(each, observer)


def _say_total(requests: Sequence[RunRequest], observer: Observer) -> None:
    if len(requests) > 1:
        plans = [_plan(each) for each in requests]
        cells = sum(len(plan.cells) for plan in plans)
        observer.say(
            f"{counted(len(plans), 'suite')}, {counted(cells, 'cell')}: "
            + ", ".join(f"{plan.suite.suite} {len(plan.cells)}" for plan in plans)
        )


def _plan(request: RunRequest) -> Plan:
    try:
        return plan_of(request)
    except UserError as error:
        raise UserError(f"suite {request.suite}: {error}") from None
