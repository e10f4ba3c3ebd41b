"""`bench report`: makes tables, figures and pages of runs again from their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.observer import Observer
from bench.records.results_file import load_records
from bench.records.run_folder import MERGED, find_run
from bench.results.request import ReportRequest
from bench.tracking.tracker import Tracker, TrackingError, recorded_store
from reports.combine.merge import merge_runs
from reports.report import RankingReport, Report, SweepReport, check_requested


@dataclass(frozen=True)
class ReportOutcome:
    reports: Sequence[Report]
    """One per suite, or per group of runs that can be merged."""
    ranking: RankingReport
    files: Sequence[Path]
    notes: Sequence[str]
    """Why tables in MLflow are not renewed."""


def report(request: ReportRequest, observer: Observer) -> ReportOutcome:
    """Check all runs before the first file is written; runs of one suite are merged."""
    check_requested(request.formats)
    folders = dict.fromkeys(find_run(name, request.root) for name in request.runs)
    reports = [Report(run) for run in merge_runs([load_records(folder) for folder in folders], request.mix)]
    for each in reports:
        each.check()
    files: list[Path] = []
    notes: list[str] = []
    for each in reports:
        first, *others = each.run.sources
        home = first if not others and first.is_dir() else None
        target = _target(each, home, len(reports), request)
        files += each.write(request.formats, target)
        if home is not None and home == target:
            notes += _track(home, request.tracking_uri)
    runs = [each.run for each in reports]
    ranking = RankingReport(runs)
    if len(reports) > 1:
        for over_all in (ranking, SweepReport(runs)):
            files += over_all.write(request.formats, request.out or request.root / MERGED)
    return ReportOutcome(reports, ranking, files, notes)


def _target(report: Report, home: Path | None, groups: int, request: ReportRequest) -> Path:
    """A run's own folder, or for what was merged one that belongs to no run; `--out` instead of either."""
    suite = report.run.suite.name
    if request.out is not None:
        return request.out / suite if groups > 1 else request.out
    return home or request.root / MERGED / suite


def _track(folder: Path, tracking_uri: str | None) -> list[str]:
    """Update what MLflow shows of the run, where its tables are in MLflow already; returns why not.

    The folder may come from a stranger, so the address in it is not written to unless the user gives it.
    """
    store = recorded_store(folder)
    tracker = Tracker(tracking_uri, folder.parent)
    if tracking_uri is None and store != tracker.address:
        if store is None:
            return []
        return [f"the tables in MLflow at {store} stay as they are; give --tracking-uri to renew them"]
    try:
        tracker.log_suite(folder)
    except TrackingError as error:
        return [f"warning: the tables are not in MLflow: {error}"]
    return []
