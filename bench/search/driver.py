"""Ray Tune runs a search: the journal suggests, ASHA stops, every configuration is one trial."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Protocol

from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import Searcher

from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.records.config import CellConfig
from bench.records.run_folder import SCRATCH
from bench.scheduling.resources import Resources
from bench.scheduling.trials import REPORT_SECONDS, KeptTrial
from bench.scheduling.watch import watched
from bench.search.budget import DIED, Budget, Limits, repeated_failure
from bench.search.endings import reason_of, rounds_of, settle_done
from bench.search.journal import Journal, Trial
from bench.search.plan import REDUCTION, Search
from bench.search.trial import DivergedError, TrialRun

RETRIES = 2
"""Of a trial whose process dies or that raises; it goes on from its checkpoints."""


class Watcher(Protocol):
    """Is told what happens to the trials, in the driver's process."""

    def advanced(self, number: int, rounds: int, validation: float | None) -> None: ...

    def ended(self, trial: Trial) -> None: ...

    def lost(self, number: int, reason: str) -> None: ...


def run_search(
    search: Search,
    journal: Journal,
    limits: Limits,
    conditions: Conditions,
    resources: Resources,
    at_once: int,
    watcher: Watcher,
) -> int:
    """Run what is missing of the search; what happened to each trial is in the journal.

    Returns how many trials lost their process more often than they are retried, and stay open.
    """
    conditions = replace(conditions, cpus=resources.cpus, gpus=resources.gpus or 0.0)
    searcher = _JournalSearcher(search, journal, limits, conditions, watcher)
    # One trial waits while the others run, so that a process that is done goes on with it at once.
    queue = at_once if resources.max_concurrent == at_once else at_once + 1
    with watched(), tempfile.TemporaryDirectory(prefix=SCRATCH, dir=search.directory) as scratch:
        tune.Tuner(
            tune.with_resources(SearchTrial, resources.request()),
            tune_config=tune.TuneConfig(
                metric="validation",
                mode="max",
                search_alg=searcher,
                scheduler=_Rungs(search, journal, searcher.number) if search.scheduler == "asha" else None,
                num_samples=-1,
                max_concurrent_trials=queue,
                time_budget_s=limits.seconds,
                reuse_actors=True,
                trial_dirname_creator=lambda trial: trial.trial_id,
            ),
            run_config=tune.RunConfig(
                name="trials",
                storage_path=scratch,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=RETRIES),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        ).fit()
    return searcher.lost


@dataclass(frozen=True)
class SearchJob:
    """A trial's whole input: the cells of one configuration."""

    cells: Sequence[tuple[CellFolder, CellConfig]]
    conditions: Conditions


class SearchTrial(KeptTrial):
    """Advances one configuration."""

    def setup(self, config: dict[str, Any]) -> None:
        self._job: SearchJob = config["job"]
        self._job.conditions.take_effect()
        self._run: TrialRun | None = None

    def step(self) -> dict[str, Any]:
        """Until there is a new measurement, or for a second."""
        failure = ""
        try:
            if self._run is None:
                self._run = TrialRun(self._job.cells, self._job.conditions)
            self._advance(self._run)
        except DivergedError as error:
            self._job.cells[0][0].fail(error)
            failure = f"diverged: {error}"
        except Exception as error:
            self._job.cells[0][0].fail(error)
            raise
        measured, validation = (self._run.measured if self._run else None) or (0, math.nan)
        return {
            "rounds": self._run.rounds if self._run else 0,
            "measured": measured,
            "validation": validation,
            "failure": failure,
            tune.result.DONE: bool(failure) or self._run is None or self._run.done,
        }

    def _advance(self, run: TrialRun) -> None:
        before, started = run.measured, time.monotonic()
        while not run.done:
            run.advance()
            if run.measured != before or time.monotonic() - started >= REPORT_SECONDS:
                return

    def cleanup(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None


class _JournalSearcher(Searcher):
    """Ray Tune's side of the journal: first what is open, then what comes next."""

    def __init__(
        self, search: Search, journal: Journal, limits: Limits, conditions: Conditions, watcher: Watcher
    ) -> None:
        super().__init__(metric="validation", mode="max")
        self._search, self._journal, self._limits = search, journal, limits
        self._budget = Budget(search, limits)
        self._conditions, self._watcher = conditions, watcher
        self._waiting = [trial.number for trial in self._budget.paid(journal) if trial.outcome is None]
        self._numbers: dict[str, int] = {}
        self._running: set[int] = set()
        self.lost = 0

    def __getstate__(self) -> dict[str, Any]:
        """Tune copies its searcher to disk; the journal is there already."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Nothing to do here: see `Journal`."""

    def number(self, trial_id: str) -> int:
        return self._numbers[trial_id]

    def suggest(self, trial_id: str) -> Any:
        trial = self._next()
        if trial is None:
            may_get_room = self._limits.by_rounds and self._running
            return None if may_get_room else Searcher.FINISHED
        self._numbers[trial_id] = trial.number
        self._running.add(trial.number)
        cells = self._search.cells(trial.values)
        folders = self._search.folders(trial)
        configs = [cell.config for cell in cells]
        return {"job": SearchJob(list(zip(folders, configs, strict=True)), self._conditions)}

    def _next(self) -> Trial | None:
        if repeated_failure(self._journal, self._limits, self.lost):
            return None
        if self._waiting:
            return self._journal[self._waiting.pop(0)]
        if not self._budget.left(self._journal):
            return None
        number = len(self._journal.trials)
        values = self._search.suggestion(number, self._journal.trials)
        return None if values is None else self._journal.suggested(number, values)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        score = result["validation"]
        self._watcher.advanced(self.number(trial_id), result["rounds"], None if math.isnan(score) else score)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        number = self.number(trial_id)
        trial = self._journal[number]
        self._running.discard(number)
        if result is None and not error:
            return  # it never started
        reason = result["failure"] if result and not error else reason_of(self._search, trial)
        if error and not reason:
            # Not the configuration's fault, as far as anybody can tell: it stays open for the next command.
            self.lost += 1
            self._watcher.lost(number, DIED)
            return
        if reason:
            trial = self._journal.ended(number, "failed", None, rounds_of(self._search, trial), reason)
        elif self._search.is_done(trial):
            trial = settle_done(self._search, self._journal, trial)
        else:
            history = self._search.history(trial)
            trial = self._journal.ended(number, "stopped", history[-1][1], rounds_of(self._search, trial))
        for folder in self._search.folders(trial):
            folder.remove_checkpoints()
        self._watcher.ended(trial)


class _Rungs(ASHAScheduler):
    """ASHA on rounds that knows what earlier commands measured, and never stops the default."""

    def __init__(self, search: Search, journal: Journal, number: Callable[[str], int]) -> None:
        super().__init__(
            time_attr="measured",
            max_t=search.rounds,
            grace_period=search.grace,
            reduction_factor=REDUCTION,
        )
        self._search, self._journal, self._number = search, journal, number
        for trial in journal.trials:
            if trial.outcome in ("finished", "stopped"):
                self._replay(SimpleNamespace(trial_id=f"earlier-{trial.number}"), trial)

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        super().on_trial_add(tune_controller, trial)
        self._replay(trial, self._journal[self._number(trial.trial_id)])

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        action: str = super().on_trial_result(tune_controller, trial, result)
        return self.CONTINUE if self._number(trial.trial_id) == 0 else action

    def _replay(self, tune_trial: Any, trial: Trial) -> None:
        """The bracket is asked for its decision again, for the sake of what it remembers."""
        for number, validation in self._search.history(trial):
            self._brackets[0].on_result(tune_trial, number, validation)
