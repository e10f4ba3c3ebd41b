"""A search while it runs: what it tries next, and what is written down about its trials."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.engine.conditions import Conditions
from bench.scheduling.deaths import Deaths
from bench.scheduling.home import Home
from bench.search.budget import DIED, Budget, Limits, repeated_failure
from bench.search.finish import failure_of, write_end
from bench.search.halving import Halving
from bench.search.journal import Journal, Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.plan import Search
from bench.search.progress import SearchProgress
from bench.search.trainable import SearchJob, TrialUpdate

GENERATIONS = 2
"""Into which the trials of a search are divided at least, so that the second learns from the first."""


@dataclass(frozen=True)
class Assignment:
    """A search to run, and under which conditions."""

    search: Search
    journal: Journal
    limits: Limits
    conditions: Conditions
    progress: SearchProgress


class RunningSearch:
    """First tries what is open in the journal, then what comes next, and concludes what has ended."""

    def __init__(self, assignment: Assignment, conditions: Conditions, home: Home, deaths: Deaths) -> None:
        """`conditions` are those of the assignment, made to fit this home."""
        self.search, self.journal = assignment.search, assignment.journal
        self._limits, self._progress = assignment.limits, assignment.progress
        self._conditions, self._home, self._deaths = conditions, home, deaths
        self._budget = Budget(self.search, self._limits)
        self._optuna_study = OptunaStudy(self.search.space)
        self._waiting = [trial.number for trial in self._budget.paid(self.journal) if trial.outcome is None]
        self._jobs: dict[str, tuple[int, ...]] = {}
        """Tune's trial → the numbers of its configurations."""
        self._running: set[int] = set()
        self._halving = None if self.stacks else self._halving_so_far()
        """Stops configurations that Tune reports one by one; a process that trains several has its own."""
        self._is_last_attempt = False
        self._deadline: float | None = None
        self.lost = 0
        """Trials whose process died more often than they are retried; they stay open."""
        self._again: list[int] = []

    @property
    def stacks(self) -> bool:
        """Whether a process trains several configurations at once."""
        return self._conditions.together > 1

    @property
    def jobs_running(self) -> int:
        return sum(any(number in self._running for number in numbers) for numbers in self._jobs.values())

    @property
    def has_begun(self) -> bool:
        return bool(self._jobs)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it in this command, except for what is tried again."""
        return not self._running and (self.time_is_up or self._is_given_up or self._is_complete)

    @property
    def has_more(self) -> bool:
        """Whether there are trials that have not begun yet."""
        return bool(self._waiting) or (not self._is_last_attempt and self._budget.left(self.journal))

    @property
    def may_go_on(self) -> bool:
        """Whether early stops of what runs may still make room for further trials."""
        return self._limits.by_rounds and bool(self._running)

    @property
    def time_is_up(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @property
    def wants_another_attempt(self) -> bool:
        """Whether trials are left whose process died beside others."""
        return bool(self._again)

    @property
    def _is_given_up(self) -> bool:
        return repeated_failure(self.journal, self._limits, self.lost) is not None

    @property
    def _is_complete(self) -> bool:
        return self._budget.complete(self.journal)

    def end_after(self, seconds: float) -> None:
        """Begin nothing after so many seconds from now."""
        self._deadline = time.monotonic() + seconds

    def try_again(self) -> None:
        """Run the trials that are left, and no others, one by one; it is the last attempt at them."""
        self._waiting, self._again = self._again, []
        self._is_last_attempt = True

    def stops(self, trial_id: str, measured: int, validation: float) -> bool:
        """Whether a job should end now: its time is up, or its only configuration is stopped early."""
        if self.time_is_up or self._halving is None:
            return self.time_is_up
        (number,) = self._jobs[trial_id]
        return self._halving.stops(number, measured, validation)

    def next_job(self, trial_id: str, processes: int) -> SearchJob | None:
        """What a process should do next, if so many of them work for this search; None: nothing now."""
        if self.time_is_up:
            return None
        chosen: list[Trial] = []
        with self.journal.in_one_write():
            while len(chosen) < self._together(processes) and (trial := self._next()):
                chosen.append(trial)
                self._running.add(trial.number)
        if not chosen:
            return None
        self._jobs[trial_id] = tuple(trial.number for trial in chosen)
        if self._halving is not None:
            self._halving.record(chosen[0].number, self.search.history(chosen[0]))
        return self._job(chosen)

    def _together(self, processes: int) -> int:
        """Configurations per stack."""
        if self._is_last_attempt:
            return 1
        share = -(-self._limits.trials // (GENERATIONS * processes))
        return max(1, min(self._conditions.together, share))

    def _next(self) -> Trial | None:
        if self._is_given_up:
            return None
        if self._waiting:
            return self.journal[self._waiting.pop(0)]
        if not self.has_more:
            return None
        number = len(self.journal.trials)
        values = self.search.suggestion(number, self.journal.trials, self._optuna_study)
        return None if values is None else self.journal.suggested(number, values)

    def _job(self, trials: Sequence[Trial]) -> SearchJob:
        cells = [
            (folder, cell.config)
            for trial in trials
            for folder, cell in zip(self.search.folders(trial), self.search.cells(trial.values), strict=True)
        ]
        numbers = tuple(trial.number for trial in trials)
        halving = self._halving_so_far() if self.stacks else None
        return SearchJob(cells, self._conditions, self._home, numbers, halving)

    def _halving_so_far(self) -> Halving | None:
        """With what the trials in the journal measured; None if trials are not stopped early."""
        if self.search.scheduler != "asha":
            return None
        halving = Halving(self.search.measured_every, self.search.rounds)
        for trial in self.journal.trials:
            if trial.outcome in ("finished", "stopped"):
                halving.record(trial.number, self.search.history(trial))
        return halving

    def advanced(self, updates: Sequence[TrialUpdate]) -> None:
        running = [trial for trial in updates if trial.number in self._running]
        for trial in running:
            self._progress.advanced(trial.number, trial.rounds, trial.validation)
        if len(updates) > 1:  # a configuration by itself ends with its job
            self._conclude({trial.number: trial.failed for trial in running if trial.ended})

    def completed(self, trial_id: str, result: dict[str, Any] | None, error: bool) -> None:
        """A job has come to its end, if only because its process died or its time was up."""
        updates = {trial.number: trial for trial in (result or {}).get("trials", ())}
        ended: dict[int, bool] = {}
        for number in self._jobs[trial_id]:
            if number not in self._running:
                continue
            failed = number in updates and updates[number].failed
            if error:
                self._lose(number, trial_id)
            elif result is None or (self.time_is_up and not failed and not self._is_done(number)):
                self._running.discard(number)  # it never started, or goes on in another command
            else:
                ended[number] = failed
        self._conclude(ended)
        if self.is_over and not self._again:
            self._progress.over()

    def _is_done(self, number: int) -> bool:
        return self.search.is_done(self.journal[number])

    def _conclude(self, ended: Mapping[int, bool]) -> None:
        """Write down how configurations ended, and whether they failed; only then is anything removed."""
        self._running.difference_update(ended)
        with self.journal.in_one_write():
            trials = [
                write_end(self.search, self.journal, self.journal[number], failed)
                for number, failed in ended.items()
            ]
        for trial in trials:
            if trial is not None:
                for folder in self.search.folders(trial):
                    folder.remove_checkpoints()
                self._progress.ended(trial)

    def _lose(self, number: int, trial_id: str) -> None:
        """Its process came to an end: what failed by itself is concluded, the rest tried again or left open.

        It is not the configuration's fault, as far as anybody can tell.
        """
        alone = len(self._jobs[trial_id]) == 1
        if alone and failure_of(self.search, self.journal[number]):
            self._conclude({number: True})
            return
        self._running.discard(number)
        if not self._is_last_attempt and (not alone or self._deaths.was_for_memory(trial_id)):
            self._again.append(number)
            return
        beside = ", even when it ran alone" if self._is_last_attempt else ""
        self.lost += 1
        self._progress.lost(number, f"{DIED}: {self._deaths.reason(trial_id)}{beside}")
