"""Ray Tune runs a search: the journal suggests, ASHA stops, every configuration is one trial."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Protocol

from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import Searcher

from bench.engine.conditions import Conditions
from bench.records.run_folder import RunFolder
from bench.scheduling.deaths import Deaths
from bench.scheduling.desk import Cells, Job
from bench.scheduling.fitting import fit
from bench.scheduling.home import Home, open_home
from bench.scheduling.kept_trial import KeptTrial
from bench.scheduling.resources import Resources
from bench.scheduling.trials import REPORT_SECONDS
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
    joined: bool = False,
) -> int:
    """Run what is missing of the search; what happened to each trial is in the journal.

    `joined` says that Ray was there before, and may have other nodes. Returns how many trials lost their
    process more often than they are retried, and stay open.
    """
    with open_home(RunFolder(search.directory), conditions.data_root, joined) as home:
        conditions = replace(conditions, cpus=resources.cpus, gpus=resources.gpus or 0.0, data=home)
        work = _Work(search, journal, limits, conditions, home, watcher)
        searcher = _JournalSearcher(work)
        # One trial waits while the others run, so that a process that is done goes on with it at once.
        queue = at_once if resources.max_concurrent == at_once else at_once + 1
        _attempt(searcher, work, resources, queue)
        if not searcher.short_of_memory:
            return searcher.lost
        alone = _JournalSearcher(work, again=searcher.short_of_memory)
        _attempt(alone, work, resources, at_once=1)
    return searcher.lost + alone.lost


@dataclass(frozen=True)
class _Work:
    """What a search's trials need."""

    search: Search
    journal: Journal
    limits: Limits
    conditions: Conditions
    home: Home
    watcher: Watcher


def _attempt(searcher: _JournalSearcher, work: _Work, resources: Resources, at_once: int) -> None:
    search = work.search
    asha = _Rungs(search, work.journal, searcher.number) if search.scheduler == "asha" else None
    fit(
        SearchTrial,
        resources,
        work.home.scratch,
        RETRIES,
        tuning={
            "metric": "validation",
            "mode": "max",
            "search_alg": searcher,
            "scheduler": asha,
            "num_samples": -1,
            "max_concurrent_trials": at_once,
            "time_budget_s": work.limits.seconds,
        },
        callbacks=[searcher.deaths],
    )


class SearchTrial(KeptTrial):
    """Advances one configuration until there is a new measurement, or for a second."""

    _run: TrialRun | None = None
    _diverged = ""

    def begin(self, cells: Cells) -> None:
        self._run = TrialRun(cells, self.job.conditions)

    def work(self) -> None:
        assert self._run is not None
        before, started = self._run.measured, time.monotonic()
        try:
            while not self._run.done:
                self._run.advance()
                if self._run.measured != before or time.monotonic() - started >= REPORT_SECONDS:
                    return
        except DivergedError as error:
            self.fail(error)
            self._diverged = f"diverged: {error}"

    def standing(self) -> dict[str, Any]:
        measured, validation = (self._run.measured if self._run else None) or (0, math.nan)
        return {
            "rounds": self._run.rounds if self._run else 0,
            "measured": measured,
            "validation": validation,
            "failure": self._diverged,
            tune.result.DONE: bool(self._diverged) or (self._run is not None and self._run.done),
        }

    def end(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run, self._diverged = None, ""


class _JournalSearcher(Searcher):
    """Ray Tune's side of the journal: first what is open, then what comes next."""

    def __init__(self, work: _Work, again: Sequence[int] | None = None) -> None:
        """With `again`, these trials are run and no others; it is the last attempt at them."""
        super().__init__(metric="validation", mode="max")
        self._search, self._journal, self._limits = work.search, work.journal, work.limits
        self._budget = Budget(work.search, work.limits)
        self._work, self._watcher, self._last = work, work.watcher, again is not None
        open_trials = [trial.number for trial in self._budget.paid(work.journal) if trial.outcome is None]
        self._waiting = open_trials if again is None else list(again)
        self._numbers: dict[str, int] = {}
        self._running: set[int] = set()
        self.deaths = Deaths()
        self.lost = 0
        self.short_of_memory: list[int] = []
        """Trials that are to be tried again alone."""

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
        return {"job": Job(list(zip(folders, configs, strict=True)), self._work.conditions, self._work.home)}

    def _next(self) -> Trial | None:
        if repeated_failure(self._journal, self._limits, self.lost):
            return None
        if self._waiting:
            return self._journal[self._waiting.pop(0)]
        if self._last or not self._budget.left(self._journal):
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
            self._lose(number, trial_id)
            return
        if reason:
            trial = self._journal.ended(number, "failed", None, rounds_of(self._search, trial), reason)
        elif self._search.is_done(trial):
            trial = settle_done(self._search, self._journal, trial)
        elif not (history := self._search.history(trial)):
            return  # its time was up before it was measured: it stays open
        else:
            trial = self._journal.ended(number, "stopped", history[-1][1], rounds_of(self._search, trial))
        for folder in self._search.folders(trial):
            folder.remove_checkpoints()
        self._watcher.ended(trial)

    def _lose(self, number: int, trial_id: str) -> None:
        """Not the configuration's fault, as far as anybody can tell: it stays open for the next command."""
        if self.deaths.was_for_memory(trial_id) and not self._last:
            self.short_of_memory.append(number)
            return
        alone = ", even when it ran alone" if self._last else ""
        self.lost += 1
        self._watcher.lost(number, f"{DIED}: {self.deaths.reason(trial_id)}{alone}")


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
