"""Ray Tune runs the cells: one trial per cell, packed by CPU and GPU shares, retried once when it fails."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ray import tune

from bench.engine.cell_run import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.config import CellConfig
from bench.records.run_folder import SCRATCH, RunFolder
from bench.scheduling.resources import Resources
from bench.scheduling.watch import watched
from bench.suite.planning import PlannedCell

REPORT_SECONDS = 1.0


@dataclass(frozen=True)
class Job:
    """A trial's whole input. Tune passes objects that are not dictionaries on as they are."""

    folder: CellFolder
    config: CellConfig
    conditions: Conditions


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
) -> None:
    """Run these cells to their end or failure; what happened to each is on disk and told to the watcher."""
    conditions = replace(conditions, cpus=resources.cpus, gpus=resources.gpus or 0.0)
    jobs = [Job(run.cell(cell.directory), cell.config, conditions) for cell in cells]
    with watched(), tempfile.TemporaryDirectory(prefix=SCRATCH, dir=run.path) as scratch:
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

    Cells keep their own checkpoints, so Tune's are switched off and a retried trial resumes where it was.
    """

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Nothing to do here: see `CellRun`."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Nothing to do here: see `CellRun`."""

    def cleanup(self) -> None:
        """End the present job."""

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()
        self.setup(new_config)
        return True


class CellTrial(KeptTrial):
    """Advances one cell."""

    def setup(self, config: dict[str, Any]) -> None:
        self._job: Job = config["job"]
        self._job.conditions.take_effect()
        self._cell: CellRun | None = None

    def step(self) -> dict[str, Any]:
        try:
            return self._work(self._job.folder)
        except Exception as error:
            self._job.folder.fail(error)
            raise

    def _work(self, folder: CellFolder) -> dict[str, Any]:
        if self._cell is None and not folder.is_done:
            self._cell = CellRun(folder, self._job.config, self._job.conditions)
        started = time.monotonic()
        while not folder.is_done and time.monotonic() - started < REPORT_SECONDS:
            assert self._cell is not None
            self._cell.advance()
        return {
            "rounds": self._cell.rounds_done if self._cell else self._job.config.training.rounds,
            "average": self._cell.last_average if self._cell else None,
            tune.result.DONE: folder.is_done,
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
            self._watcher.advanced(_cell_id(trial), result["rounds"], result.get("average"))

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        if self._watcher:
            self._watcher.finished(_cell_id(trial))

    def on_trial_error(self, iteration: int, trials: Any, trial: Any, **_: Any) -> None:
        folder: CellFolder = trial.config["job"].folder
        if folder.failure() is None:
            folder.fail(RuntimeError("its process died (out of memory, or killed)"))
        if self._watcher:
            self._watcher.failed(_cell_id(trial), folder.failure() or "unknown")


def _cell_id(trial: Any) -> str:
    job: Job = trial.config["job"]
    return job.config.cell_id
