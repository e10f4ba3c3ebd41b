"""Mistakes found before anything is written: missing data, impossible partitions, unsuitable methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from bench.data.cache import checked_thoroughly
from bench.engine.assembly import Assembled, assemble, check_method, check_partition
from bench.engine.conditions import Conditions
from bench.engine.devices import best_device, check_precision
from bench.engine.executors import check_executor
from bench.suite.planning import PlannedCell


def check_before_start(
    cells: Sequence[PlannedCell], conditions: Conditions, say: Callable[[str], None]
) -> Assembled | None:
    """Check what these cells need; returns the first cell's problem, for telling what is about to run.

    Model and data are assembled once per setting; of its other seeds the partition is made, too. Data that
    were damaged in the cache are made again.
    """
    check_executor(conditions.executor)
    with checked_thoroughly():
        return _check_settings(cells, conditions, say)


def _check_settings(
    cells: Sequence[PlannedCell], conditions: Conditions, say: Callable[[str], None]
) -> Assembled | None:
    first: Assembled | None = None
    for _, group in groupby(cells, key=lambda cell: cell.variant):
        settings: dict[str, Assembled] = {}  # of one variant only: each holds its data
        partitions: set[tuple[str, int]] = set()
        methods: set[tuple[str, str]] = set()
        for cell in group:
            setting = cell.config.workload
            if setting not in settings:
                check_precision(cell.config.training.precision, best_device(conditions.gpus))
                if cell.config.encoder is not None:
                    say(f"encoder: {cell.config.encoder.name}; features that are not cached are computed now")
                settings[setting] = assemble(cell.config, conditions.data_root)
                first = first or settings[setting]
            elif (setting, cell.seed) not in partitions:
                check_partition(cell.config, conditions.data_root)
            partitions.add((setting, cell.seed))
            method = (setting, cell.config.method.model_dump_json())
            if method not in methods:
                check_method(cell.config, settings[setting])
            methods.add(method)
    return first
