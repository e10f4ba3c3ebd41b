"""`bench.run`: what `bench run` does, with methods, datasets and models given as objects."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.api.keywords import takes_fields_of
from bench.api.observer import PrintingObserver
from bench.api.results import Result
from bench.api.rows import MethodLike, rows_of
from bench.records.reader import load_run
from bench.request import made
from bench.runs.request import RunRequest
from bench.runs.run import run as run_suite
from bench.suite.model import Suite
from bench.text import counted
from bench.validation import validated

if TYPE_CHECKING:
    from bench.data.choice import DatasetChoice
    from bench.models.choice import ModelChoice


@takes_fields_of(RunRequest)
def run(
    suite: str | Path | Suite | Mapping[str, Any],
    *,
    methods: Sequence[MethodLike] | None = None,
    dataset: DatasetChoice | Mapping[str, Any] | None = None,
    partition: Mapping[str, Any] | None = None,
    model: ModelChoice | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Run what is missing of a suite, and return its result.

    `suite` is the name of a suite, the path of its file, or its content. `methods` holds names ("fedavg"),
    paths of Python files, classes, and objects with hyperparameters of their own (`FedProx(mu=0.1)`); a class
    may be defined in a script or notebook. `dataset` and `model` take what `bench.data.from_arrays`,
    `bench.data.from_folder` and `bench.models.from_module` return, or a mapping as in a suite file.
    `overrides` sets dotted keys, such as {"training.epochs": 1, "fedlsa.lam": 0.7}. `tuned` uses the
    hyperparameters that `bench tune` has chosen; with "both", rows with the defaults stand beside them.

    Finished cells are kept: running again computes only what is missing.
    """
    changes = dict(overrides or {})
    for section, chosen in (("dataset", dataset), ("partition", partition), ("model", model)):
        if chosen is not None:
            changes[section] = dict(chosen) if isinstance(chosen, Mapping) else chosen.as_config()
    given = {
        "suite": _suite(suite),
        "methods": None if methods is None else rows_of(methods),
        "overrides": changes,
    }
    outcome = run_suite(made(RunRequest, given | options, "bench.run"), PrintingObserver(progress))
    for warning in outcome.warnings:
        warnings.warn(warning, stacklevel=2)
    if failed := outcome.failures:
        name, reason = next(iter(failed.items()))
        warnings.warn(
            f"{len(failed)} of {counted(len(outcome.plan.own), 'cell')} failed; the first, {name}: {reason}; "
            "run again to retry",
            stacklevel=2,
        )
    if outcome.report is None:  # other shards have not ended
        return Result(load_run(outcome.plan.folder.path))
    return Result(outcome.report.run, outcome.report)


def _suite(given: str | Path | Suite | Mapping[str, Any]) -> str | Suite:
    if isinstance(given, Mapping):
        return validated(Suite, given, "suite")
    return given if isinstance(given, Suite) else str(given)
