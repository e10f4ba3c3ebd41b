"""How far a run has come, from its records alone: also for a run on another machine that shares the disk."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from bench.errors import UserError
from bench.records.cell_folder import CellFolder, as_record
from bench.records.files import read_json
from bench.records.run_folder import RunFolder
from bench.records.schema import PlannedRecord, PlanRecord, SuiteRecord, row_name

State = Literal["done", "failed", "running", "quiet", "waiting"]

QUIET: Final = 300.0
"""Seconds without a new round after which a cell does not count as running; longer where rounds are long."""


@dataclass(frozen=True)
class CellStanding:
    """How far one cell has come."""

    name: str
    state: State
    """`quiet`: begun and not ended, but without a new round for a while; `waiting`: not begun."""
    rounds: int = 0
    planned: int | None = None
    """Rounds that it is to have; None before it begins."""
    average: float | None = None
    """AVG of the last evaluated round, as a fraction."""
    seconds: float | None = None
    """Of a round, the median of the last ones."""
    since: float = 0.0
    """Seconds since its last sign of life."""
    failure: str = ""


@dataclass(frozen=True)
class RunStanding:
    """How far a run has come."""

    suite: SuiteRecord
    cells: tuple[CellStanding, ...]

    def count(self, *states: State) -> int:
        return sum(cell.state in states for cell in self.cells)

    @property
    def rounds(self) -> tuple[int, int]:
        """Recorded, and planned in all; cells that have not begun count like the most common ones."""
        known = Counter(cell.planned for cell in self.cells if cell.planned)
        usual = known.most_common(1)[0][0] or 0 if known else 0
        done = sum(cell.planned or usual if cell.state == "done" else cell.rounds for cell in self.cells)
        return done, sum(cell.planned or usual for cell in self.cells)

    @property
    def over(self) -> bool:
        """Whether every cell has ended, well or not."""
        return self.count("done", "failed") == len(self.cells)

    def seconds_left(self) -> float | None:
        """At the pace of the cells that run now; None if none does."""
        running = [cell.seconds for cell in self.cells if cell.state == "running" and cell.seconds]
        failed = sum((cell.planned or 0) - cell.rounds for cell in self.cells if cell.state == "failed")
        done, planned = self.rounds
        if not running:
            return None
        return max(0, planned - done - failed) * statistics.fmean(running) / len(running)


@dataclass
class RunWatch:
    """Looks at a run folder again and again; cells that are done are read once."""

    path: Path
    _done: dict[str, CellStanding] = field(default_factory=dict)

    def look(self) -> RunStanding:
        """How far the run has come now."""
        folder = RunFolder(self.path)
        if not folder.has_plan:
            raise UserError(f"no plan.json in {self.path}; give the folder of a run")
        remedy = "run the suite again to write it again"
        plan = as_record(PlanRecord, read_json(folder.plan), folder.plan, remedy)
        return RunStanding(plan.suite, tuple(self._cell(folder, cell) for cell in plan.cells))

    def _cell(self, run: RunFolder, planned: PlannedRecord) -> CellStanding:
        if planned.cell_id in self._done:
            return self._done[planned.cell_id]
        found = standing_of(
            run.cell(planned.directory), row_name(planned.label, planned.variant, planned.seed)
        )
        if found.state == "done":
            self._done[planned.cell_id] = found
        return found


def standing_of(folder: CellFolder, name: str) -> CellStanding:
    """How far a cell has come; `name` is what it is called in words."""
    config = folder.config()
    if config is None:
        return CellStanding(name, "waiting")
    latest = folder.latest()
    rounds = latest[-1].round if latest else 0
    average = next((line.average for line in reversed(latest) if line.test), None)
    seconds = statistics.median(line.seconds for line in latest[-5:]) if latest else None
    signs = [file.stat().st_mtime for file in (folder.rounds_file, folder.path) if file.exists()]
    since = max(0.0, time.time() - max(signs, default=0.0))
    failure = "" if folder.is_done else folder.failure() or ""
    return CellStanding(
        name,
        _state(folder, failure, since, seconds),
        rounds,
        config.training.rounds,
        average,
        seconds,
        since,
        failure,
    )


def _state(folder: CellFolder, failure: str, since: float, seconds: float | None) -> State:
    if folder.is_done:
        return "done"
    if failure and not _is_retried(folder):
        return "failed"
    return "running" if since < max(QUIET, 3 * (seconds or 0)) else "quiet"


def _is_retried(folder: CellFolder) -> bool:
    """Whether rounds were recorded after the failure."""
    file, failed = folder.rounds_file, folder.failed_at()
    return file.is_file() and failed is not None and file.stat().st_mtime > failed
