"""Ray Tune runs the cells: one trial per cell, packed by CPU and GPU shares, retried once when it fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from ray import tune

from bench.engine.cell_run import CellRun
from bench.engine.conditions import Conditions
from bench.records.run_folder import RunFolder
from bench.scheduling.deaths import Deaths
from bench.scheduling.desk import Cells, Job
from bench.scheduling.fitting import fit
from bench.scheduling.home import Home, open_home
from bench.scheduling.kept_trial import KeptTrial
from bench.scheduling.resources import Resources
from bench.suite.planning import PlannedCell

REPORT_SECONDS = 1.0


class Watcher(Protocol):
    """Is told what happens to the cells, in the driver's process."""

    def advanced(self, cell: str, rounds: int, average: float | None) -> None: ...

    def finished(self, cell: str) -> None: ...

    def failed(self, cell: str, reason: str) -> None: ...


def run_cells(
    run: RunFolder,
    cells: Sequence[PlannedCell],
    conditions: Conditions,
    resources: Resources,
    watcher: Watcher,
    joined: bool = False,
) -> None:
    """Run these cells to their end or failure; what happened to each is on disk and told to the watcher.

    `joined` says that Ray was there before, and may have other nodes.
    """
    with open_home(run, conditions.data_root, joined) as home:
        conditions = replace(conditions, cpus=resources.cpus, gpus=resources.gpus or 0.0, data=home)
        jobs = [Job([(run.cell(cell.directory), cell.config)], conditions, home) for cell in cells]
        for job in _attempt(jobs, resources, home, watcher, last=False):
            _attempt([job], replace(resources, max_concurrent=1), home, watcher, last=True)


def _attempt(
    jobs: Sequence[Job], resources: Resources, home: Home, watcher: Watcher, last: bool
) -> list[Job]:
    """Run these jobs; returns those that ran out of memory, unless it is the `last` attempt at them."""
    deaths = Deaths()
    reporter = _Reporter(watcher, deaths, last)
    fit(
        CellTrial,
        resources,
        home.scratch,
        retries=1,
        param_space={"job": tune.grid_search(list(jobs))},
        tuning={"max_concurrent_trials": resources.max_concurrent},
        callbacks=[deaths, reporter],
    )
    return reporter.short_of_memory


class CellTrial(KeptTrial):
    """Advances one cell."""

    _cell: CellRun | None = None
    _done = False

    def begin(self, cells: Cells) -> None:
        ((folder, config),) = cells
        self._done = folder.is_done
        if not self._done:
            self._cell = CellRun(folder, config, self.job.conditions)

    def work(self) -> None:
        started = time.monotonic()
        while not self._done and time.monotonic() - started < REPORT_SECONDS:
            assert self._cell is not None
            self._cell.advance()
            self._done = self._cell.done

    def standing(self) -> dict[str, Any]:
        ((_, config),) = self.job.cells
        return {
            "rounds": self._cell.rounds_done if self._cell else config.training.rounds * self._done,
            "average": self._cell.last_average if self._cell else None,
            tune.result.DONE: self._done,
        }

    def end(self) -> None:
        if self._cell is not None:
            self._cell.close()
        self._cell, self._done = None, False


class LostProcessError(Exception):
    """A cell's process came to an end without a word."""


class _Reporter(tune.Callback):
    """Passes Tune's events on. Tune copies its callbacks to disk; the watcher stays in the driver."""

    def __init__(self, watcher: Watcher, deaths: Deaths, last: bool) -> None:
        self._watcher, self._deaths, self._last = watcher, deaths, last
        self.short_of_memory: list[Job] = []
        """Those that are to be tried again alone."""

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
        self._watcher.advanced(_cell_id(trial), result["rounds"], result.get("average"))

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        self._watcher.finished(_cell_id(trial))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        ((folder, config),) = trial.config["job"].cells
        if folder.failure() is None:
            reason = self._deaths.reason(trial.trial_id)
            if self._deaths.was_for_memory(trial.trial_id):
                if not self._last:
                    self.short_of_memory.append(trial.config["job"])
                    return
                reason += ", even when it ran alone; use a node with more memory, or a smaller model"
            folder.open(config)
            folder.fail(LostProcessError(reason))
        self._watcher.failed(_cell_id(trial), folder.failure() or "unknown")


def _cell_id(trial: Any) -> str:
    ((_, config),) = trial.config["job"].cells
    return str(config.cell_id)
