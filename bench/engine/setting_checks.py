"""Builds data, partition, model and method of a setting once, before any process computes its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.config.cell import CellConfig
from bench.data.cache import checked_thoroughly
from bench.engine.assembly import Assembled, assemble, checked_task
from bench.engine.devices import check_precision
from bench.engine.prepared_data import read_data
from methods.core.task import Task


def check_precisions(configs: Iterable[CellConfig], device: str) -> None:
    """A UserError if a cell is to be trained in a precision that its type of device does not have."""
    for precision in {config.training.precision for config in configs}:
        check_precision(precision, device)


@dataclass(frozen=True)
class CheckedSetting:
    """What was built of a setting."""

    task: Task
    assembled: Assembled | None
    """None where features would have to be computed for it and were not asked for."""


def check_setting(
    config: CellConfig, data_root: Path | None, say: Callable[[str], None], extract: bool
) -> CheckedSetting:
    """A UserError if the data are not there, or partition, model and method do not fit them.

    Features of an encoder that are not cached are computed only if `extract` is set, and only once the model
    has accepted their shape. Data that were damaged in the cache are made again.
    """
    with checked_thoroughly():
        data = read_data(config, data_root)
        if config.encoder is not None and not data.is_embedded(config.encoder):
            task = checked_task(config, data.blank(config.encoder))
            if not extract:
                return CheckedSetting(task, None)
            say(f"encoder: {config.encoder.name}; its features are not cached and are computed now")
        assembled = assemble(config, data_root)
        return CheckedSetting(assembled.problem.task, assembled)
