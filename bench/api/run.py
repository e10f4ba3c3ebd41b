"""`bench.run`: what `bench run` does, with methods, datasets and models given as objects."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.api.observer import PrintingObserver
from bench.api.results import Result
from bench.api.rows import MethodLike, rows_of
from bench.engine.executors import with_stacks
from bench.records.reader import load_run
from bench.runs.checks import check_before_start
from bench.runs.drive import drive
from bench.runs.preview import preview
from bench.runs.request import RunRequest
from bench.suite.model import Suite
from bench.tracking.tracker import Tracker, TrackingError
from bench.validation import validated
from bench.words import counted

if TYPE_CHECKING:
    from bench.data.choice import DatasetChoice
    from bench.models.choice import ModelChoice


def run(
    suite: str | Path | Suite | Mapping[str, Any],
    *,
    methods: Sequence[MethodLike] | None = None,
    seeds: int | None = None,
    rounds: int | None = None,
    dataset: DatasetChoice | Mapping[str, Any] | None = None,
    partition: Mapping[str, Any] | None = None,
    model: ModelChoice | Mapping[str, Any] | None = None,
    encoder: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    tuned: bool | Literal["both"] = False,
    tuned_dir: str | Path = "tuned",
    out: str | Path = "runs",
    data_root: str | Path | None = None,
    progress: bool = True,
    **resources: Any,
) -> Result:
    """Run what is missing of a suite, and return its result.

    `suite` is the name of a suite, the path of its file, or its content. `methods` holds names ("fedavg"),
    paths of Python files, classes, and objects with hyperparameters of their own (`FedProx(mu=0.1)`); a class
    may be defined in a script or notebook. `dataset` and `model` take what `bench.data.from_arrays`,
    `bench.data.from_folder` and `bench.models.from_module` return, or a mapping as in a suite file.
    `overrides` sets dotted keys, such as {"training.epochs": 1, "fedlsa.lam": 0.7}. `tuned` uses the
    hyperparameters that `bench tune` has chosen; with "both", rows with the defaults stand beside them.

    Finished cells are kept: running again computes only what is missing. Further keyword arguments are those
    of `bench.runs.request.RunRequest`: executor, cpus_per_trial, gpus_per_trial, max_concurrent, address,
    tracking_uri, checkpoint_every, keep_model.
    """
    changes = dict(overrides or {})
    for section, chosen in (("dataset", dataset), ("partition", partition), ("model", model)):
        if chosen is not None:
            changes[section] = dict(chosen) if isinstance(chosen, Mapping) else chosen.as_config()
    request = RunRequest(
        suite=_suite(suite),
        methods=None if methods is None else rows_of(methods),
        seeds=seeds,
        rounds=rounds,
        encoder=encoder,
        overrides=changes,
        tuned=tuned,
        tuned_dir=Path(tuned_dir),
        out=Path(out),
        data_root=None if data_root is None else Path(data_root),
        **resources,
    )
    plan, conditions = request.plan(), request.conditions()
    observer = PrintingObserver(progress)
    if pending := plan.pending():
        request.begin_ray()
    first = check_before_start(pending, conditions, observer.say)
    if first is not None:
        conditions = with_stacks(conditions, first.problem)
    for line in preview(plan, pending, conditions, first):
        observer.say(line)
    tracker = Tracker(request.tracking_uri, request.out.absolute())
    drive(plan, conditions, request.resources() if pending else None, tracker, observer, request.address)
    result = Result(load_run(plan.folder.path))
    result.write()
    try:
        tracker.log_suite(plan.folder.path)
    except TrackingError as error:
        warnings.warn(f"the tables are not in MLflow: {error}", stacklevel=2)
    if failed := plan.failures():
        name, reason = next(iter(failed.items()))
        warnings.warn(
            f"{len(failed)} of {counted(len(plan.cells), 'cell')} failed; the first, {name}: {reason}; "
            "run again to retry",
            stacklevel=2,
        )
    return result


def _suite(given: str | Path | Suite | Mapping[str, Any]) -> str | Suite:
    if isinstance(given, Mapping):
        return validated(Suite, given, "suite")
    return given if isinstance(given, Suite) else str(given)
