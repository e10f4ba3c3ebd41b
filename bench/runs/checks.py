"""Mistakes found before anything is written: missing data, impossible partitions, unsuitable methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from bench.engine.assembly import Assembled, check_method, check_partition
from bench.engine.devices import device_here
from bench.engine.setting_checks import CheckedSetting, check_precisions, check_setting
from bench.runs.request import RunRequest
from bench.suite.planning import PlannedCell


def check_before_start(
    cells: Sequence[PlannedCell], request: RunRequest, say: Callable[[str], None], extract: bool
) -> Assembled | None:
    """Check what these cells need; returns the first cell's problem, for telling what is about to run.

    Model and data are assembled once per setting; of its other seeds the partition is made, too. Without
    `extract`, features that are not cached are not computed, and the problem of a cell that needs them is
    None.
    """
    if request.address is None:  # what the nodes of a cluster have is known once it is joined
        check_precisions((cell.config for cell in cells), device_here(request.gpus_per_trial))
    first: CheckedSetting | None = None
    for _, group in groupby(cells, key=lambda cell: cell.variant):
        settings: dict[str, CheckedSetting] = {}  # of one variant only: each holds its data
        partitions: set[tuple[str, int]] = set()
        methods: set[tuple[str, str]] = set()
        for cell in group:
            setting = cell.config.workload
            if setting not in settings:
                settings[setting] = check_setting(cell.config, request.data_root, say, extract)
                first = first or settings[setting]
            elif (setting, cell.seed) not in partitions:
                check_partition(cell.config, request.data_root)
            partitions.add((setting, cell.seed))
            method = (setting, cell.config.method.model_dump_json())
            if method not in methods:
                check_method(cell.config, settings[setting].task)
            methods.add(method)
    return first.assembled if first else None
