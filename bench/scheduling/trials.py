"""Ray Tune runs the cells: one trial a cell, packed by CPU and GPU shares, retried once when it fails."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")

import ray
from ray import tune

from bench.engine.cell_run import SCRATCH, CellRun, Conditions, failure_of, is_done, record_failure
from bench.errors import UserError
from bench.scheduling.watch import watched
from bench.suite.planning import PlannedCell

REPORT_SECONDS = 1.0


@dataclass(frozen=True)
class Resources:
    """What one trial may use."""

    cpus: float = 1
    gpus: float | None = 0
    """None: a whole GPU where the cluster has any, else none."""
    hosts: int = 0
    """Host actors beside the trial itself; each has the trial's share, and the trial's own is then idle."""
    max_concurrent: int | None = None

    def request(self) -> tune.PlacementGroupFactory:
        share: dict[str, int | float] = {"CPU": self.cpus, **({"GPU": self.gpus} if self.gpus else {})}
        bundles = [{"CPU": 1.0}, *[share] * self.hosts] if self.hosts else [share]
        return tune.PlacementGroupFactory(bundles)

    def at_once(self, cluster: dict[str, float]) -> int:
        """How many trials the cluster has room for."""
        needed = self.request().required_resources
        room = min(int(cluster.get(name, 0) / amount + 1e-9) for name, amount in needed.items() if amount)
        return min(room, self.max_concurrent) if self.max_concurrent else room


class Watcher(Protocol):
    """Is told what happens to the cells, in the driver's process."""

    def advanced(self, cell: str, rounds: int, average: float | None) -> None: ...

    def finished(self, cell: str) -> None: ...

    def failed(self, cell: str, reason: str) -> None: ...


def start_ray(address: str | None = None, cpus: int | None = None, gpus: float | None = None) -> None:
    """Join the cluster at this address, or start Ray on this machine alone."""
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        return
    if address is not None:
        _refuse_dead(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {"include_dashboard": False, "num_cpus": cpus, "num_gpus": gpus}
    try:
        ray.init(address=address or "local", **options)
    except ConnectionError as error:
        raise UserError(f"no Ray cluster at '{address}': {' '.join(str(error).split())}") from None
    except Exception as error:
        if "timed out during startup" not in str(error):  # Ray has no class for it
            raise
        raise UserError(
            "Ray did not start within 30 s: is the machine too busy? run it again later"
        ) from None
    if threading.current_thread() is threading.main_thread():
        # As for Ctrl-C; Ray's own handler would abort the process in the middle of a write.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _refuse_dead(address: str) -> None:
    """Ray would try for minutes to reach a cluster that is not there."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster at '{address}': {error}; give --address its address, auto, or leave it out"
        ) from None


def settled(resources: Resources) -> Resources:
    """With the GPU share decided; a trial that fits nowhere would wait for ever, so that is said now."""
    cluster = ray.cluster_resources()
    if resources.gpus is None:
        resources = replace(resources, gpus=1.0 if cluster.get("GPU", 0) >= 1 else 0.0)
    if resources.at_once(cluster) < 1:
        wanted = ", ".join(f"{amount:g} {name}" for name, amount in _needed(resources).items())
        there = ", ".join(f"{cluster.get(name, 0):g} {name}" for name in _needed(resources))
        raise UserError(
            f"a trial needs {wanted} but Ray has {there}: lower --cpus-per-trial, --gpus-per-trial or --hosts"
        )
    return resources


def _needed(resources: Resources) -> dict[str, float]:
    return {name: amount for name, amount in resources.request().required_resources.items() if amount}


def run_cells(
    run_directory: Path,
    cells: Sequence[PlannedCell],
    conditions: Conditions,
    resources: Resources,
    watcher: Watcher,
) -> None:
    """Run these cells to their end or failure; what happened to each is on disk and told to the watcher."""
    conditions = replace(conditions, cpus=resources.cpus, gpus=resources.gpus or 0.0)
    jobs = [_job(run_directory, cell, conditions) for cell in cells]
    with watched(), tempfile.TemporaryDirectory(prefix=SCRATCH, dir=run_directory) as scratch:
        tune.Tuner(
            tune.with_resources(CellTrial, resources.request()),
            param_space={"job": tune.grid_search(jobs)},
            tune_config=tune.TuneConfig(
                max_concurrent_trials=resources.max_concurrent,
                reuse_actors=True,
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name="cells",
                storage_path=scratch,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=1),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                callbacks=[_Reporter(watcher)],
            ),
        ).fit()


class KeptTrial(tune.Trainable):
    """A process that takes one job after the other.

    Cells keep their own checkpoints, so Tune's are switched off and a retried trial goes on where it was.
    """

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing to do here: see `CellRun`."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing to do here: see `CellRun`."""

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True


class CellTrial(KeptTrial):
    """Advances one cell."""

    def setup(self, config: dict[str, Any]) -> None:
        job = json.loads(config["job"])
        conditions = taken_up(job["conditions"])
        self._directory = Path(job["directory"])
        self._config = job["config"]
        self._cell: CellRun | None = None
        self._open = lambda: CellRun(self._directory, self._config, conditions)

    def step(self) -> dict[str, Any]:
        try:
            return self._work()
        except Exception as error:
            record_failure(self._directory, error)
            raise

    def _work(self) -> dict[str, Any]:
        if self._cell is None and not is_done(self._directory):
            self._cell = self._open()
        started = time.monotonic()
        while not is_done(self._directory) and time.monotonic() - started < REPORT_SECONDS:
            assert self._cell is not None
            self._cell.advance()
        done = is_done(self._directory)
        return {
            "rounds": self._cell.rounds_done if self._cell else self._config["training"]["rounds"],
            "average": self._cell.last_average if self._cell else None,
            tune.result.DONE: done,
        }

    def cleanup(self) -> None:
        if self._cell is not None:
            self._cell.close()
            self._cell = None


class _Reporter(tune.Callback):
    """Passes Tune's events on. Tune copies its callbacks to disk; the watcher stays in the driver."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher: Watcher | None = watcher

    def __getstate__(self) -> dict[str, Any]:
        return {"_watcher": None}

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any) -> None:
        if self._watcher:
            self._watcher.advanced(_cell(trial), result["rounds"], result.get("average"))

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        if self._watcher:
            self._watcher.finished(_cell(trial))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        directory = Path(json.loads(trial.config["job"])["directory"])
        if failure_of(directory) is None:
            record_failure(directory, RuntimeError("its process died (out of memory, or killed)"))
        if self._watcher:
            self._watcher.failed(_cell(trial), failure_of(directory) or "unknown")


def _job(run_directory: Path, cell: PlannedCell, conditions: Conditions) -> str:
    """A trial's whole input as text, which Tune passes on untouched."""
    return json.dumps(
        {
            "directory": str(run_directory / cell.directory),
            "config": cell.config,
            "conditions": asdict(conditions),
        },
        default=str,
    )


def taken_up(conditions: dict[str, Any]) -> Conditions:
    """The conditions of a job, after this process has been held to its share of the machine."""
    import torch

    from bench.engine.process import use_share

    found = Conditions(**conditions | {"data_root": _path(conditions["data_root"])})
    use_share(found.threads)
    if found.gpus and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(min(1.0, found.gpus))
    return found


def _cell(trial: Any) -> str:
    return json.loads(trial.config["job"])["config"]["cell"]


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
