"""`bench run`: plan, check all that can be checked, run what is missing, track it, make the tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout

from bench.engine.cell_run import SCRATCH, Conditions, failure_of, is_done
from bench.suite.model import Suite
from bench.cli.console import BenchConsole
from bench.data import dataset_spec
from bench.engine.assembly import Assembled, assemble, check_method
from bench.engine.executors import check_executor
from bench.errors import UserError
from bench.records.files import write_json
from bench.runs.partition_record import write_partition
from bench.suite.planning import SCHEMA, PlannedCell, plan_cells
from bench.cli.live import View, items_of, make_view
from bench.tracking.tracker import Tracker, TrackingError
from bench.records.beside import find_beside
from reports.figures import check_figures, write_figures, write_ranking
from reports.page import write_page
from reports.numbers.ranking import rank_runs
from bench.records.reader import Run, load_run
from reports.tables.kinds import tables_of
from reports.render.files import PAGE, write_tables

if TYPE_CHECKING:  # importing Ray costs seconds, which a run with nothing to do should not pay
    from bench.scheduling.trials import Resources

FORMATS = ("md", "latex", "csv", PAGE)


@dataclass(frozen=True)
class Plan:
    suite: Suite
    cells: list[PlannedCell]
    directory: Path
    settings: dict[str, Any]
    """What the user changed of the suite."""
    tuning: dict[str, Any] | None = None
    """How the hyperparameters were chosen, where a search did."""

    @property
    def pending(self) -> list[PlannedCell]:
        return [cell for cell in self.cells if not is_done(self.directory / cell.directory)]

    def write(self) -> None:
        write_json(
            self.directory / "plan.json",
            {
                "schema": SCHEMA,
                "suite": {
                    "name": self.suite.suite,
                    "version": self.suite.version,
                    "title": self.suite.title,
                },
                "table": self.suite.table.model_dump(exclude_none=True),
                "domains": self._domains(),
                "set": self.settings,
                **({"tuning": self.tuning} if self.tuning else {}),
                "cells": [
                    {
                        "cell": cell.cell,
                        "dir": cell.directory,
                        "method": cell.method,
                        "label": cell.label,
                        "variant": cell.variant,
                        "seed": cell.seed,
                    }
                    for cell in self.cells
                ],
            },
        )

    def _domains(self) -> list[str]:
        """Of all datasets of the suite, in order."""
        datasets = [dict(cell.config["dataset"]) for cell in self.cells]
        specs = [dataset_spec(options.pop("name"), options) for options in datasets]
        return list(dict.fromkeys(domain for spec in specs for domain in spec.domain_names()))


def make_plan(
    suite: Suite, out: Path, settings: dict[str, Any], tuning: dict[str, Any] | None = None
) -> Plan:
    return Plan(suite, plan_cells(suite), out / suite.suite, settings, tuning)


def check_before_start(plan: Plan, conditions: Conditions) -> Assembled | None:
    """Find missing data, impossible partitions and unsuitable methods before anything is written.

    Returns the first cell's problem, for telling the user what is about to run.
    """
    check_executor(conditions.executor)
    first: Assembled | None = None
    for _, cells in groupby(plan.pending, key=lambda cell: cell.variant):
        settings: dict[str, Assembled] = {}  # of one variant only: each holds its data
        for cell in cells:
            keys = ("dataset", "partition", "encoder", "model", "training")
            setting = repr([cell.config.get(key) for key in keys])
            if setting not in settings:
                settings[setting] = assemble(cell.config, conditions.data_root)
                first = first or settings[setting]
            check_method(cell.config, settings[setting])
    return first


def run(
    plan: Plan,
    conditions: Conditions,
    resources: Resources | None,
    tracker: Tracker,
    console: BenchConsole,
    address: str | None = None,
) -> None:
    """What becomes of each cell is on disk."""
    if plan.pending:
        from bench.scheduling.trials import Resources, run_cells, settled, start_ray

        start_ray(address)
        resources = settled(resources or Resources())
    with alone(plan.directory), Recording(plan, tracker, console) as recording:
        for left_by_a_kill in plan.directory.glob(f"{SCRATCH}*"):
            shutil.rmtree(left_by_a_kill, ignore_errors=True)
        plan.write()
        if plan.pending:
            write_partition(plan.directory, plan.cells[0], conditions.data_root)
        recording.catch_up([cell for cell in plan.cells if is_done(plan.directory / cell.directory)])
        pending = plan.pending
        if resources and pending:
            title = f"{plan.suite.suite} v{plan.suite.version}"
            with make_view(console, title, items_of(pending), len(plan.cells) - len(pending)) as view:
                run_cells(plan.directory, pending, conditions, resources, _Watcher(view, recording))


@contextmanager
def alone(directory: Path, command: str = "bench run") -> Iterator[None]:
    """One driver a run: a second one would train the same cells."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory.parent / f".{directory.name}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(
            f"another `{command}` is at work in {directory}; wait for it or choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()


class Background:
    """Writes to MLflow in a thread of its own; a failure is said once."""

    def __init__(self, console: BenchConsole, items: str) -> None:
        self._console, self._items = console, items
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._tasks: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def submit(self, task: Callable[..., None], *arguments: Any) -> None:
        self._tasks.append(self._pool.submit(task, *arguments))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        errors = [task.exception() for task in self._tasks if task.done() and not task.cancelled()]
        problems = [error for error in errors if error is not None]
        unexpected = [error for error in problems if not isinstance(error, TrackingError)]
        if unexpected and kind is None:
            raise unexpected[0]
        if problems:
            text = f"warning: {len(problems)} {self._items} are not in MLflow: {problems[0]}"
            self._console.say(text)


class Recording(Background):
    """Logs finished cells beside the run."""

    def __init__(self, plan: Plan, tracker: Tracker, console: BenchConsole) -> None:
        super().__init__(console, "cells")
        self._plan, self._tracker = plan, tracker
        self._directories = {cell.cell: plan.directory / cell.directory for cell in plan.cells}

    def catch_up(self, cells: Sequence[PlannedCell]) -> None:
        """Log what an earlier run finished but had no time to log."""
        for directory in self._tracker.pending([self._directories[cell.cell] for cell in cells]):
            self._submit(directory)

    def log(self, cell: str) -> None:
        self._submit(self._directories[cell])

    def _submit(self, directory: Path) -> None:
        self.submit(self._tracker.log_cell, self._plan.directory, directory)


class _Watcher:
    """Shows what happens and has finished cells logged."""

    def __init__(self, view: View, recording: Recording) -> None:
        self._view, self._recording = view, recording

    def advanced(self, cell: str, rounds: int, average: float | None) -> None:
        self._view.advanced(cell, rounds, average)

    def finished(self, cell: str) -> None:
        self._view.finished(cell)
        self._recording.log(cell)

    def failed(self, cell: str, reason: str) -> None:
        self._view.failed(cell, reason)
        self._recording.log(cell)


def write_reports(directory: Path, formats: Sequence[str] = FORMATS, out: Path | None = None) -> list[Path]:
    """Tables, figures and the page of a run directory."""
    return write_reports_of(load_run(directory), formats, out or directory)


def write_reports_of(run: Run, formats: Sequence[str], target: Path) -> list[Path]:
    """Tables, figures and the page of a run, or of several that have been merged into one."""
    beside = find_beside(Path(run.source))
    check_figures(run, beside)
    files = write_tables(tables_of(run), run.suite.name, formats, target / "tables")
    files += write_figures(run, target / "figures", beside)
    files += write_ranking(rank_runs([run]), target / "figures")
    return [*files, write_page(run, target, beside)] if PAGE in formats else files


def failures(plan: Plan) -> dict[str, str]:
    """Cell folder → why it failed."""
    reasons = {cell.directory: failure_of(plan.directory / cell.directory) for cell in plan.pending}
    return {directory: reason or "did not finish" for directory, reason in reasons.items()}
