"""The driver of a run: computes what is missing, and logs every finished cell to MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.observer import Item, Observer, View
from bench.records.files import inside
from bench.records.lock import alone, one_of
from bench.records.run_folder import RunFolder
from bench.records.schema import PlannedRecord
from bench.runs.partition_record import partition_record
from bench.runs.plan import Plan
from bench.runs.request import RunRequest
from bench.suite.planning import PlannedCell
from bench.tracking.background import Background
from bench.tracking.tracker import Tracker
from bench.trials.conditions import make_conditions

if TYPE_CHECKING:  # importing Ray costs seconds, which a run with nothing to do should not pay
    from bench.cluster.resources import Resources

COMMAND = "bench run"


def drive(
    plan: Plan,
    pending: Sequence[PlannedCell],
    together: int,
    request: RunRequest,
    tracker: Tracker,
    observer: Observer,
) -> None:
    """Run the pending cells, as many `together` as may be stacked; what becomes of each is on disk."""
    resources = _resources(pending, request, observer) if pending else None
    with _held(plan), _Recording(plan, tracker, observer) as recording:
        if plan.shard is None:  # other shards may be at work in theirs
            plan.folder.remove_scratch()
        inside(plan.folder.path, "cells")
        plan.write()
        pending = plan.pending()  # once more, since another command may have run before the lock was free
        waiting = {cell.cell_id for cell in pending}
        recording.catch_up([cell for cell in plan.own if cell.cell_id not in waiting])
        if pending and resources is not None:
            plan.folder.write_partition(partition_record(plan.cells[0].config, request.data_root))
            items = [Item(cell.cell_id, cell.name, cell.config.training.rounds) for cell in pending]
            title = f"{plan.suite.suite} v{plan.suite.version}"
            title += f", shard {plan.shard}" if plan.shard else ""
            with observer.view(title, items, len(plan.own) - len(pending)) as view:
                watcher = _Watcher(view, recording, observer)
                _compute(plan.folder, pending, together, request, resources, watcher)


def _resources(cells: Sequence[PlannedCell], request: RunRequest, observer: Observer) -> Resources:
    """What a trial has, once Ray has started."""
    from bench.cluster.nodes import nodes
    from bench.trials.start import start

    resources = start(request, (cell.config for cell in cells), observer.say)
    if len(nodes()) > 1:
        observer.say(resources.in_words(nodes()))
    return resources


def _compute(
    folder: RunFolder,
    cells: Sequence[PlannedCell],
    together: int,
    request: RunRequest,
    resources: Resources,
    watcher: _Watcher,
) -> None:
    from bench.cluster.driver_node import open_driver_node
    from bench.trials.cell_trials import run_cells

    with open_driver_node(folder, request.data_root, joined=request.address is not None) as driver_node:
        conditions = make_conditions(
            [cell.config for cell in cells],
            cpus=resources.cpus,
            gpus=resources.gpus or 0.0,
            together=together,
            driver_node=driver_node,
            data_root=request.data_root,
            executor=request.executor,
            hosts=request.hosts_per_trial,
            checkpoint_seconds=request.checkpoint_every,
            keep_model=request.keep_model,
        )
        run_cells(folder, cells, conditions, driver_node, resources, watcher)


def _held(plan: Plan) -> AbstractContextManager[None]:
    """The lock of the folder, or of the shard."""
    if plan.shard is None:
        return alone(plan.folder.path, COMMAND)
    return one_of(plan.folder.path, COMMAND, plan.shard.number, plan.shard.count)


def log_all(plan: Plan, tracker: Tracker, observer: Observer) -> None:
    """Log every cell of the plan that has ended and is not in MLflow yet."""
    with _Recording(replace(plan, shard=None), tracker, observer) as recording:
        recording.catch_up(plan.cells)


class _Recording(Background):
    """Logs finished cells beside the run; those of a shard are logged by the one that ends last."""

    def __init__(self, plan: Plan, tracker: Tracker, observer: Observer) -> None:
        super().__init__(observer.say, "cells")
        self._plan, self._tracker = plan, tracker
        self._cells = {cell.cell_id: cell.as_record() for cell in plan.cells}

    def catch_up(self, cells: Sequence[PlannedCell]) -> None:
        """Log what an earlier run finished but had no time to log."""
        if self._plan.shard is not None:
            return
        ended = [self._cells[cell.cell_id] for cell in cells]
        for cell in self._tracker.pending(self._plan.folder.path, ended):
            self._submit(cell)

    def log(self, cell_id: str) -> None:
        if self._plan.shard is None:
            self._submit(self._cells[cell_id])

    def _submit(self, cell: PlannedRecord) -> None:
        self.submit(self._tracker.log_cell, self._plan.folder.path, cell)


class _Watcher:
    """Shows what happens and has ended cells logged."""

    def __init__(self, view: View, recording: _Recording, observer: Observer) -> None:
        self._view, self._recording = view, recording
        self.said = observer.say

    def advanced(self, cell_id: str, rounds: int, average: float | None) -> None:
        self._view.advanced(cell_id, rounds, average)

    def finished(self, cell_id: str) -> None:
        self._view.finished(cell_id)
        self._recording.log(cell_id)

    def failed(self, cell_id: str, reason: str) -> None:
        self._view.failed(cell_id, reason)
        self._recording.log(cell_id)
