"""A search while it runs, in the driver: what it tries next, and how its trials ended.

A job is what Ray Tune calls a trial: one process that trains one or several trials of the search.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.cluster.driver_node import DriverNode
from bench.cluster.failures import ProcessFailures
from bench.engine.conditions import Conditions
from bench.engine.stacking.joint import StackError
from bench.search.budget import DIED, Budget, Limits, repeated_failure
from bench.search.finish import failure_of, write_end
from bench.search.halving import Halving
from bench.search.journal import Journal, Trial
from bench.search.optuna_study import OptunaStudy
from bench.search.plan import Search
from bench.search.progress import SearchProgress
from bench.search.trainable import SearchJob, TrialUpdate

GENERATIONS = 2
"""A search suggests its trials in at least this many groups, so that later ones learn from earlier ones."""


@dataclass(frozen=True)
class Assignment:
    """A search to run, and how."""

    search: Search
    journal: Journal
    limits: Limits
    conditions: Conditions
    progress: SearchProgress


class RunningSearch:
    """Runs the open trials of the journal, then new ones, and writes down how they end."""

    def __init__(self, assignment: Assignment, driver_node: DriverNode, failures: ProcessFailures) -> None:
        self.search, self.journal = assignment.search, assignment.journal
        self._limits, self._progress = assignment.limits, assignment.progress
        self._conditions, self._driver_node, self._failures = assignment.conditions, driver_node, failures
        self._budget = Budget(self.search, self._limits)
        self._optuna_study = OptunaStudy(self.search.space)
        self._waiting = [trial.number for trial in self._budget.paid(self.journal) if trial.outcome is None]
        self._jobs: dict[str, tuple[int, ...]] = {}
        """Job → the numbers of its trials."""
        self._running: set[int] = set()
        self._halving = None if self.stacks else self._halving_so_far()
        """Stops trials that Tune reports one by one; a job of several trials has its own."""
        self._is_last_attempt = False
        self._deadline: float | None = None
        self.lost = 0
        """How many trials stay open because their process died too often."""
        self._again: list[int] = []
        """Trials whose process died, for the last attempt."""
        self._said: set[str] = set()

    @property
    def stacks(self) -> bool:
        """Whether a process trains several trials at once."""
        return self._conditions.together > 1

    @property
    def jobs_running(self) -> int:
        return sum(any(number in self._running for number in numbers) for numbers in self._jobs.values())

    @property
    def has_begun(self) -> bool:
        return bool(self._jobs)

    @property
    def is_over(self) -> bool:
        """Whether no trial runs or will be started, apart from those that `try_again` starts."""
        return not self._running and (
            self.time_is_up or self._is_given_up or self._budget.complete(self.journal)
        )

    @property
    def has_more(self) -> bool:
        """Whether there are trials that have not begun yet."""
        return bool(self._waiting) or (not self._is_last_attempt and self._budget.left(self.journal))

    @property
    def may_go_on(self) -> bool:
        """Whether early stops of running trials may still pay for more trials."""
        return self._limits.by_rounds and bool(self._running)

    @property
    def time_is_up(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    @property
    def wants_another_attempt(self) -> bool:
        """Whether trials are left for `try_again`."""
        return bool(self._again)

    @property
    def _is_given_up(self) -> bool:
        return repeated_failure(self.journal, self._limits, self.lost) is not None

    def end_after(self, seconds: float) -> None:
        """Start no trials after this time, and end those that run."""
        self._deadline = time.monotonic() + seconds

    def try_again(self) -> None:
        """Run the trials whose process died once more, one per job, and start no new ones."""
        self._waiting, self._again = self._again, []
        self._is_last_attempt = True

    def stops(self, job_id: str, measured: int, validation: float) -> bool:
        """Whether to end a job: its time is up, or its only trial is stopped early."""
        if self.time_is_up or self._halving is None:
            return self.time_is_up
        (number,) = self._jobs[job_id]
        return self._halving.stops(number, measured, validation)

    def next_job(self, job_id: str, processes: int) -> SearchJob | None:
        """The next job of a search that has this number of processes; None if nothing can start now."""
        if self.time_is_up:
            return None
        chosen: list[Trial] = []
        with self.journal.in_one_write():
            while len(chosen) < self._together(processes) and (trial := self._next()):
                chosen.append(trial)
                self._running.add(trial.number)
        if not chosen:
            return None
        self._jobs[job_id] = tuple(trial.number for trial in chosen)
        if self._halving is not None:
            self._halving.record(chosen[0].number, self.search.history(chosen[0]))
        return self._job(chosen)

    def _together(self, processes: int) -> int:
        """How many trials a job has."""
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
        return SearchJob(cells, self._conditions, self._driver_node, numbers, halving)

    def _halving_so_far(self) -> Halving | None:
        """Early stops that know all ended trials; None if the search has no early stops."""
        if self.search.scheduler != "asha":
            return None
        halving = Halving(self.search.measured_every, self.search.rounds)
        for trial in self.journal.trials:
            if trial.outcome in ("finished", "stopped"):
                halving.record(trial.number, self.search.history(trial), trial.outcome == "stopped")
        return halving

    def advanced(self, updates: Sequence[TrialUpdate]) -> None:
        """Take note of what a job reports."""
        running = [trial for trial in updates if trial.number in self._running]
        for trial in running:
            self._progress.advanced(trial.number, trial.rounds, trial.validation)
        if len(updates) > 1:  # a single trial ends with its job
            self._conclude({trial.number: trial.failed for trial in running if trial.ended})

    def completed(self, job_id: str, result: dict[str, Any] | None, error: bool) -> None:
        """A job has ended: its trials ended, its process died (`error`), or its time was up."""
        updates = {trial.number: trial for trial in (result or {}).get("trials", ())}
        ended: dict[int, bool] = {}
        for number in self._jobs[job_id]:
            if number not in self._running:
                continue
            failed = number in updates and updates[number].failed
            cut_short = self.time_is_up and not failed and not self.search.is_done(self.journal[number])
            if error:
                self._lose(number, job_id)
            elif result is None or cut_short:
                self._running.discard(number)  # it never started, or the next command resumes it
            else:
                ended[number] = failed
        self._conclude(ended)
        if self.is_over and not self._again:
            self._progress.over()

    def _conclude(self, ended: Mapping[int, bool]) -> None:
        """Write down how trials ended (number → whether it failed), and then remove their checkpoints."""
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

    def _say_if_apart(self, number: int) -> None:
        """Tell the user why trials that were one stack are computed one by one."""
        trial = self.journal[number]
        name, _, reason = failure_of(self.search, trial).partition(": ")
        if name == StackError.__name__:
            if reason not in self._said:
                self._said.add(reason)
                self._progress.say(f"{self.search.row}: {reason}; its trials are computed one by one")
            for folder in self.search.folders(trial):
                folder.forget_failure()

    def _lose(self, number: int, job_id: str) -> None:
        """The process of a trial died or raised.

        An error that the trial recorded is its end. Otherwise it may not be the trial's fault, so it is tried
        again if other trials of the job or the memory can be the reason, and stays open if not.
        """
        single = len(self._jobs[job_id]) == 1
        if single and failure_of(self.search, self.journal[number]):
            self._conclude({number: True})
            return
        self._running.discard(number)
        if not self._is_last_attempt and (not single or self._failures.was_for_memory(job_id)):
            self._say_if_apart(number)
            self._again.append(number)
            return
        again = ", even when it ran alone" if self._is_last_attempt else ""
        self.lost += 1
        self._progress.lost(number, f"{DIED}: {self._failures.reason(job_id)}{again}")
