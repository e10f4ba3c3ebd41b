"""`bench run`: runs what is missing of a suite and reports on it, or only says what it would do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.engine.executors import cells_at_once
from bench.observer import Observer
from bench.records.files import check_writable
from bench.records.lock import in_turn
from bench.records.reader import Run, load_run
from bench.runs.checks import check_before_start
from bench.runs.drive import drive, log_all
from bench.runs.estimates import estimate
from bench.runs.plan import Plan, plan_of
from bench.runs.preview import in_words
from bench.runs.request import RunRequest
from bench.suite.planning import PlannedCell
from bench.text import counted
from bench.tracking.tracker import Tracker, TrackingError
from reports.report import FORMATS, Report

SECONDS_FOR_A_REPORT = 120.0
"""How long a shard waits for another one that makes the report at the same time."""


@dataclass(frozen=True)
class RunOutcome:
    """How far a run has come."""

    plan: Plan
    report: Report | None
    """None: it is left to another shard."""
    files: Sequence[Path]
    failures: Mapping[str, str]
    """Folder of each cell that was to be run and has no result → why."""
    warnings: Sequence[str]
    seconds: float
    explore: str
    """How to see the cells in MLflow."""

    @property
    def problems(self) -> list[str]:
        """What failed, one sentence each."""
        found = [
            f"failed: {self.plan.folder.path / directory}: {reason}"
            for directory, reason in self.failures.items()
        ]
        if found:
            cells = counted(len(self.plan.own), "cell")
            found.append(f"{len(found)} of {cells} failed; run the same command again to retry")
        return found


@dataclass(frozen=True)
class _Checked:
    """A plan without mistakes."""

    plan: Plan
    pending: Sequence[PlannedCell]
    together: int
    """How many cells may be stacked."""
    tracker: Tracker


def run(request: RunRequest, observer: Observer) -> RunOutcome:
    """Run what is missing; a kill loses only the rounds since the last checkpoints."""
    checked = _check(request, observer, extract=True)
    started = time.monotonic()
    drive(checked.plan, checked.pending, checked.together, request, checked.tracker, observer)
    seconds = time.monotonic() - started
    if checked.plan.shard is None:
        return _concluded(checked, seconds)
    return _concluded_shard(checked, seconds, observer)


def preview(request: RunRequest, observer: Observer) -> None:
    """Check everything that a run checks, and say what it would do; nothing is written or extracted."""
    checked = _check(request, observer, extract=False)
    for line in estimate(checked.pending, request):
        observer.say(line)


def _check(request: RunRequest, observer: Observer, extract: bool) -> _Checked:
    plan = plan_of(request)
    check_writable(plan.folder.path)
    tracker = Tracker(request.tracking_uri, request.out.absolute())
    pending = plan.pending()
    if pending and extract:
        request.begin_ray()
    first = check_before_start(pending, request, observer.say, extract)
    for line in in_words(plan, pending, request.executor, first):
        observer.say(line)
    together = cells_at_once(first.problem, request.executor)[0] if first else 1
    return _Checked(plan, pending, together, tracker)


def _concluded_shard(checked: _Checked, seconds: float, observer: Observer) -> RunOutcome:
    """Make the tables of all shards if this one ends last."""
    plan, ended = checked.plan, f"shard {checked.plan.shard} ended in {seconds:.0f} s"
    if waiting := plan.open_elsewhere():
        observer.say(
            f"{ended}; {counted(waiting, 'cell')} of other shards have not ended: the shard that ends last "
            f"makes the tables, and so does `bench report {plan.folder.path}`"
        )
        return _unreported(checked, seconds)
    with in_turn(plan.folder.path, SECONDS_FOR_A_REPORT) as mine:
        if not mine:
            observer.say(f"{ended}; another one makes the tables")
            return _unreported(checked, seconds)
        log_all(plan, checked.tracker, observer)
        return _concluded(checked, seconds)


def _unreported(checked: _Checked, seconds: float) -> RunOutcome:
    plan = checked.plan
    return RunOutcome(plan, None, (), plan.failures(), (), seconds, checked.tracker.ui_command())


def _concluded(checked: _Checked, seconds: float) -> RunOutcome:
    """Make the tables from the records, and log them."""
    plan, tracker, warnings = checked.plan, checked.tracker, []
    report = Report(load_run(plan.folder.path))
    files = report.write(FORMATS, plan.folder.path)
    try:
        tracker.log_suite(plan.folder.path)
    except TrackingError as error:
        warnings.append(f"the tables are not in MLflow: {error}")
    failures = _failures(plan, report.run)
    return RunOutcome(plan, report, files, failures, warnings, seconds, tracker.ui_command())


def _failures(plan: Plan, run: Run) -> dict[str, str]:
    unfinished = {cell.cell_id: cell.error for cell in run.cells if cell.result is None}
    return {
        cell.directory: unfinished[cell.cell_id] or "did not finish"
        for cell in plan.own
        if cell.cell_id in unfinished
    }
