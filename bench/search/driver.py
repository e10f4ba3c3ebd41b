"""Ray Tune runs a search: the journal suggests, ASHA stops.

A trial of Tune is one configuration, or several that one process trains as a stack.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import Searcher

from bench.engine.cell_stack import Cells
from bench.engine.conditions import Conditions
from bench.records.run_folder import RunFolder
from bench.scheduling.deaths import Deaths
from bench.scheduling.desk import Job
from bench.scheduling.fitting import fit
from bench.scheduling.home import Home, conditions_at, open_home
from bench.scheduling.kept_trial import KeptTrial
from bench.scheduling.resources import Resources
from bench.scheduling.trials import REPORT_SECONDS
from bench.search.budget import DIED, Budget, Limits, repeated_failure
from bench.search.endings import reason_of, rounds_of, settle_done
from bench.search.halving import REDUCTION, Halving
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.trial import DivergedError, TrialBatch

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
        configs = [cell.config for cell in search.cells({})]
        conditions = conditions_at(home, conditions, resources, configs)
        together = _together(limits, conditions.together, at_once)
        work = _Work(search, journal, limits, conditions, home, watcher, together)
        searcher = _JournalSearcher(work)
        # One trial waits while the others run, so that a process that is done goes on with it at once; not a
        # stack of them, which had better be suggested when there is something to learn from.
        waits = together == 1 and resources.max_concurrent != at_once
        queue = at_once + 1 if waits else at_once
        _attempt(searcher, work, resources, queue)
        if not searcher.again:
            return searcher.lost
        alone = _JournalSearcher(work, again=searcher.again)
        _attempt(alone, work, resources, at_once=1)
    return searcher.lost + alone.lost


def _together(limits: Limits, most: int, at_once: int) -> int:
    """Configurations per stack: at least two generations, so that the second learns from the first."""
    return max(1, min(most, -(-limits.trials // (2 * at_once))))


@dataclass(frozen=True)
class _Work:
    """What a search's trials need."""

    search: Search
    journal: Journal
    limits: Limits
    conditions: Conditions
    home: Home
    watcher: Watcher
    together: int
    """How many configurations one process trains as a stack."""

    def job(self, trials: Sequence[Trial]) -> SearchJob:
        """The cells of these configurations, as the input of one trial of Tune."""
        cells = [
            (folder, cell.config)
            for trial in trials
            for folder, cell in zip(self.search.folders(trial), self.search.cells(trial.values), strict=True)
        ]
        numbers = tuple(trial.number for trial in trials)
        return SearchJob(cells, self.conditions, self.home, numbers, self._halving())

    def _halving(self) -> Halving | None:
        if self.search.scheduler != "asha" or self.together == 1:
            return None
        ended = [trial for trial in self.journal.trials if trial.outcome in ("finished", "stopped")]
        histories = [self.search.history(trial) for trial in ended]
        return Halving.after(self.search.grace, self.search.rounds, histories)


def _attempt(searcher: _JournalSearcher, work: _Work, resources: Resources, at_once: int) -> None:
    search = work.search
    by_tune = search.scheduler == "asha" and work.together == 1
    asha = _Rungs(search, work.journal, searcher.number) if by_tune else None
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


@dataclass(frozen=True)
class SearchJob(Job):
    """The cells of one or more configurations, one configuration after the other."""

    trials: tuple[int, ...]
    """The configurations' numbers."""
    halving: Halving | None
    """Who is stopped early among configurations that are computed together, where Tune cannot do it."""


class SearchTrial(KeptTrial):
    """Advances configurations until there is a new measurement, or for a second."""

    job: SearchJob
    _batch: TrialBatch | None = None

    def begin(self, cells: Cells) -> None:
        each = len(cells) // len(self.job.trials)
        trials = {
            number: cells[position * each : (position + 1) * each]
            for position, number in enumerate(self.job.trials)
        }
        self._batch = TrialBatch(trials, self.job.conditions, self.job.halving)
        self._raise_if_alone(self._batch)

    def work(self) -> None:
        assert self._batch is not None
        before, started = _seen(self._batch), time.monotonic()
        while not self._batch.done:
            self._batch.advance()
            self._raise_if_alone(self._batch)
            if _seen(self._batch) != before or time.monotonic() - started >= REPORT_SECONDS:
                return

    def _raise_if_alone(self, batch: TrialBatch) -> None:
        """A configuration by itself fails its trial, which Tune tries again, unless it diverged."""
        failure = batch.trials[0].failure
        if len(batch.trials) == 1 and failure is not None and not isinstance(failure, DivergedError):
            raise failure

    def standing(self) -> dict[str, Any]:
        trials = self._batch.trials if self._batch else []
        first = (trials[0].measured if trials else None) or (0, math.nan)
        return {
            "trials": [
                Standing(
                    trial.number,
                    trial.rounds,
                    trial.measured[1] if trial.measured else None,
                    trial.ended,
                    trial.failure is not None,
                )
                for trial in trials
            ],
            "measured": first[0],
            "validation": first[1],
            tune.result.DONE: bool(trials) and all(trial.ended for trial in trials),
        }

    def end(self) -> None:
        if self._batch is not None:
            self._batch.close()
        self._batch = None


class Standing(NamedTuple):
    """How far a configuration is."""

    number: int
    rounds: int
    validation: float | None
    ended: bool
    failed: bool


def _seen(batch: TrialBatch) -> list[object]:
    return [(trial.measured, trial.ended) for trial in batch.trials]


class _JournalSearcher(Searcher):
    """Ray Tune's side of the journal: first what is open, then what comes next."""

    def __init__(self, work: _Work, again: Sequence[int] | None = None) -> None:
        """With `again`, these trials are run and no others, one by one; it is the last attempt at them."""
        super().__init__(metric="validation", mode="max")
        self._search, self._journal, self._limits = work.search, work.journal, work.limits
        self._budget = Budget(work.search, work.limits)
        self._work, self._watcher, self._last = work, work.watcher, again is not None
        open_trials = [trial.number for trial in self._budget.paid(work.journal) if trial.outcome is None]
        self._waiting = open_trials if again is None else list(again)
        self._numbers: dict[str, tuple[int, ...]] = {}
        self._running: set[int] = set()
        self.deaths = Deaths()
        self.lost = 0
        self.again: list[int] = []
        """Trials that are to be tried again with nothing beside them."""

    def __getstate__(self) -> dict[str, Any]:
        """Tune copies its searcher to disk; the journal is there already."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Nothing to do here: see `Journal`."""

    def number(self, trial_id: str) -> int:
        """That of the only configuration of a trial."""
        (number,) = self._numbers[trial_id]
        return number

    def suggest(self, trial_id: str) -> Any:
        chosen: list[Trial] = []
        while len(chosen) < (1 if self._last else self._work.together) and (trial := self._next()):
            chosen.append(trial)
            self._running.add(trial.number)
        if not chosen:
            may_get_room = self._limits.by_rounds and self._running
            return None if may_get_room else Searcher.FINISHED
        self._numbers[trial_id] = tuple(trial.number for trial in chosen)
        return {"job": self._work.job(chosen)}

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
        for trial in result["trials"]:
            if trial.number in self._running:
                self._watcher.advanced(trial.number, trial.rounds, trial.validation)
                if trial.ended and len(result["trials"]) > 1:
                    self._conclude(trial.number, trial.failed)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        standings = {trial.number: trial for trial in (result or {}).get("trials", ())}
        for number in self._numbers[trial_id]:
            if number not in self._running:
                continue
            if error:
                self._lose(number, trial_id)
            elif result is None:
                self._running.discard(number)  # it never started
            else:
                self._conclude(number, number in standings and standings[number].failed)

    def _conclude(self, number: int, failed: bool) -> None:
        """Write down how a configuration ended."""
        self._running.discard(number)
        trial = self._journal[number]
        if failed:
            reason = reason_of(self._search, trial)
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
        """Its process came to an end: what failed by itself is concluded, the rest tried again or left open.

        It is not the configuration's fault, as far as anybody can tell.
        """
        alone = len(self._numbers[trial_id]) == 1
        if alone and reason_of(self._search, self._journal[number]):
            self._conclude(number, failed=True)
            return
        self._running.discard(number)
        if not self._last and (not alone or self.deaths.was_for_memory(trial_id)):
            self.again.append(number)
            return
        beside = ", even when it ran alone" if self._last else ""
        self.lost += 1
        self._watcher.lost(number, f"{DIED}: {self.deaths.reason(trial_id)}{beside}")


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
