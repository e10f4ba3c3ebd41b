"""Ray Tune runs the cells: a trial takes one or several, and trials are packed by CPU and GPU shares.

A trial that fails is retried once; what several cells leave undone is tried again cell by cell.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from ray import tune

from bench.cluster.driver_node import DriverNode
from bench.cluster.failures import ProcessFailures
from bench.cluster.nodes import nodes
from bench.cluster.resources import Resources
from bench.engine.cell_stack import Cells, CellStack
from bench.engine.conditions import Conditions
from bench.engine.stacking.joint import StackError
from bench.records.cell_folder import CellFolder
from bench.records.run_folder import RunFolder
from bench.suite.planning import PlannedCell
from bench.trials.bundles import bundles, stacks
from bench.trials.scratch import Job
from bench.trials.trainable import CellTrainable
from bench.trials.tuner import fit


class Watcher(Protocol):
    """Is told what happens to the cells, in the driver's process."""

    def advanced(self, cell: str, rounds: int, average: float | None) -> None: ...

    def finished(self, cell: str) -> None: ...

    def failed(self, cell: str, reason: str) -> None: ...

    def said(self, text: str) -> None:
        """A sentence for the user."""


def run_cells(
    run: RunFolder,
    cells: Sequence[PlannedCell],
    conditions: Conditions,
    driver_node: DriverNode,
    resources: Resources,
    watcher: Watcher,
) -> None:
    """Run these cells to their end or failure; what happened to each is on disk and told to the watcher."""
    folders = {cell.cell_id: run.cell(cell.directory) for cell in cells}
    run_cells_in(folders, cells, conditions, driver_node, resources, watcher)


def run_cells_in(
    folders: Mapping[str, CellFolder],
    cells: Sequence[PlannedCell],
    conditions: Conditions,
    driver_node: DriverNode,
    resources: Resources,
    watcher: Watcher,
) -> None:
    """The same for cells of several runs or searches; `folders` has the folder of every cell by its id."""
    places = {cell.cell_id: (folders[cell.cell_id], cell.config) for cell in cells}
    processes = resources.at_once(nodes())
    jobs = [
        Job(
            [places[cell.cell_id] for stack in bundle for cell in stack],
            conditions,
            driver_node,
            stacks=[len(stack) for stack in bundle],
        )
        for bundle in bundles(stacks(cells, conditions.together, processes), processes)
    ]
    first = _attempt(jobs, resources, driver_node, watcher, last=False)
    second = _attempt(first.one_by_one, resources, driver_node, watcher, last=False)
    for job in [*first.short_of_memory, *second.short_of_memory]:
        _attempt([job], replace(resources, max_concurrent=1), driver_node, watcher, last=True)


def _attempt(
    jobs: Sequence[Job], resources: Resources, driver_node: DriverNode, watcher: Watcher, last: bool
) -> _Reporter:
    """Run these jobs; the reporter knows which cells are to be tried again."""
    failures = ProcessFailures()
    reporter = _Reporter(watcher, failures, last)
    if jobs:
        fit(
            CellTrial,
            resources,
            driver_node.scratch,
            retries=1,
            param_space={"job": tune.grid_search(list(jobs))},
            tuning={"max_concurrent_trials": resources.max_concurrent},
            callbacks=[failures, reporter],
        )
    return reporter


class CellTrial(CellTrainable):
    """Advances cells, stack after stack."""

    _stack: CellStack | None = None

    def setup(self, config: dict[str, Any]) -> None:
        super().setup(config)
        self._waiting: deque[Cells] = deque()

    def begin(self, cells: Cells) -> None:
        rest = iter(cells)
        self._waiting = deque(list(islice(rest, size)) for size in self.job.stacks)

    def work(self) -> None:
        started = time.monotonic()
        while self._next_running() and time.monotonic() - started < self.report_seconds:
            assert self._stack is not None
            self._stack.advance()
            self._note_failures(self._stack)

    def _next_running(self) -> bool:
        """Whether there is a stack with cells to advance; it is opened when those before it are done."""
        while self._waiting and not (self._stack and self._stack.running):
            cells = self._waiting.popleft()
            self.process_cache.keep_for(config for _, config in cells)
            self._stack = CellStack(cells, self.job.conditions, self.process_cache)
            self._note_failures(self._stack)
        return self._stack is not None and bool(self._stack.running)

    def waiting(self) -> Container[CellFolder]:
        return {folder for stack in self._waiting for folder, _ in stack}

    def standing(self) -> dict[str, Any]:
        running = {} if self._stack is None else {cell.folder: cell for cell in self._stack.running}
        return {
            "running": [
                (config.cell_id, cell.rounds_done, cell.last_average)
                for folder, config in self.cells
                if (cell := running.get(folder)) is not None
            ],
            tune.result.DONE: not running and not self._waiting,
        }

    def end(self) -> None:
        if self._stack is not None:
            self._stack.close()
        self._stack = None

    def fail(self, error: Exception) -> None:
        """Leave the reason with the cells at hand, not with those that are done or wait."""
        if len(self.job.cells) == 1 or self._stack is None:
            super().fail(error)
            return
        for cell in self._stack.running:
            cell.folder.fail(error)

    def _note_failures(self, stack: CellStack) -> None:
        """A cell by itself fails its trial; of several it is left out, with the reason in its folder."""
        while stack.failed:
            folder, error = stack.failed.popitem()
            if len(self.job.cells) == 1:
                raise error
            folder.fail(error)


class LostProcessError(Exception):
    """A cell's process came to an end without a word."""


class _Reporter(tune.Callback):
    """Passes Tune's events on. Tune copies its callbacks to disk; the watcher stays in the driver."""

    def __init__(self, watcher: Watcher, failures: ProcessFailures, last: bool) -> None:
        self._watcher, self._failures, self._last = watcher, failures, last
        self._finished: set[str] = set()
        self._said: set[str] = set()
        self.one_by_one: list[Job] = []
        """The cells that failed beside others."""
        self.short_of_memory: list[Job] = []
        """The cells that are to be tried again with nothing beside them."""

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
        job: Job = trial.config["job"]
        for cell_id, rounds, average in result["running"]:
            self._watcher.advanced(cell_id, rounds, average)
        running = {cell_id for cell_id, _, _ in result["running"]}
        self._tell_finished(job, [config.cell_id for _, config in job.cells if config.cell_id not in running])

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        job: Job = trial.config["job"]
        self._tell_finished(job, [config.cell_id for _, config in job.cells])
        self._try_again(job)

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        job: Job = trial.config["job"]
        if len(job.cells) > 1:
            self._tell_finished(job, [config.cell_id for _, config in job.cells])
            self._try_again(job)
            return
        ((folder, config),) = job.cells
        if folder.failure() is None:
            reason = self._failures.reason(trial.trial_id)
            if self._failures.was_for_memory(trial.trial_id):
                if not self._last:
                    self.short_of_memory.append(job)
                    return
                reason += ", even when it ran alone; use a node with more memory, or a smaller model"
            folder.open(config)
            folder.fail(LostProcessError(reason))
        self._watcher.failed(config.cell_id, folder.failure() or "unknown")

    def _tell_finished(self, job: Job, cells: Collection[str]) -> None:
        for folder, config in job.cells:
            if config.cell_id in cells and config.cell_id not in self._finished and folder.is_done:
                self._finished.add(config.cell_id)
                if result := folder.result():
                    self._watcher.advanced(config.cell_id, result.rounds, result.final.avg)
                self._watcher.finished(config.cell_id)

    def _try_again(self, job: Job) -> None:
        """What several cells left undone, cell by cell: one that fails is no matter of the others."""
        left = [(folder, config) for folder, config in job.cells if not folder.is_done]
        self.one_by_one += [replace(job, cells=[cell], stacks=(1,)) for cell in left]
        for reason in dict.fromkeys(filter(None, (folder.failure() for folder, _ in left))):
            if reason.startswith(f"{StackError.__name__}: ") and reason not in self._said:
                self._said.add(reason)
                self._watcher.said(f"{reason.partition(': ')[2]}; these cells are computed one by one")
