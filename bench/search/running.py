"""A search while it runs: what it tries next, and what is written down about its trials."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bench.engine.conditions import Conditions
from bench.engine.stacking.joint import StackError
from bench.scheduling.deaths import Deaths
from bench.scheduling.home import Home
from bench.search.budget import DIED, Budget, Limits, repeated_failure
from bench.search.endings import reason_of, rounds_of, settle_done
from bench.search.halving import Halving
from bench.search.job import SearchJob, Standing
from bench.search.journal import Journal, Trial
from bench.search.plan import Search
from bench.search.study import JournalStudy

GENERATIONS = 2
"""Into which the trials of a search are divided at least, so that the second learns from the first."""


class Watcher(Protocol):
    """Is told what happens to the trials of a search, in the driver's process."""

    def advanced(self, number: int, rounds: int, validation: float | None) -> None: ...

    def ended(self, trial: Trial) -> None: ...

    def lost(self, number: int, reason: str) -> None: ...

    def said(self, text: str) -> None:
        """A sentence for the user."""

    def over(self) -> None:
        """The search has had all it may have."""


@dataclass(frozen=True)
class Assignment:
    """A search to run, and under which conditions."""

    search: Search
    journal: Journal
    limits: Limits
    conditions: Conditions
    watcher: Watcher


class RunningSearch:
    """First tries what is open in the journal, then what comes next, and concludes what has ended."""

    def __init__(self, assignment: Assignment, conditions: Conditions, home: Home, deaths: Deaths) -> None:
        """`conditions` are those of the assignment, made to fit this home."""
        self.search, self.journal = assignment.search, assignment.journal
        self._limits, self._watcher = assignment.limits, assignment.watcher
        self._conditions, self._home, self._deaths = conditions, home, deaths
        self._budget = Budget(self.search, self._limits)
        self._study = JournalStudy(self.search.space)
        self._waiting = [trial.number for trial in self._budget.paid(self.journal) if trial.outcome is None]
        self._jobs: dict[str, tuple[int, ...]] = {}
        """Tune's trial → the numbers of its configurations."""
        self._running: set[int] = set()
        self._is_last_attempt = False
        self._deadline: float | None = None
        self.lost = 0
        """Trials whose process died more often than they are retried; they stay open."""
        self._again: list[int] = []
        self._said: set[str] = set()

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

    def number(self, trial_id: str) -> int:
        """That of the only configuration of a trial of Tune."""
        (number,) = self._jobs[trial_id]
        return number

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
        values = self.search.suggestion(number, self.journal.trials, self._study)
        return None if values is None else self.journal.suggested(number, values)

    def _job(self, trials: Sequence[Trial]) -> SearchJob:
        cells = [
            (folder, cell.config)
            for trial in trials
            for folder, cell in zip(self.search.folders(trial), self.search.cells(trial.values), strict=True)
        ]
        numbers = tuple(trial.number for trial in trials)
        return SearchJob(cells, self._conditions, self._home, numbers, self._halving())

    def _halving(self) -> Halving | None:
        if self.search.scheduler != "asha" or not self.stacks:
            return None
        ended = [trial for trial in self.journal.trials if trial.outcome in ("finished", "stopped")]
        histories = [self.search.history(trial) for trial in ended]
        return Halving.after(self.search.grace, self.search.rounds, histories)

    def advanced(self, standings: Sequence[Standing]) -> None:
        running = [trial for trial in standings if trial.number in self._running]
        for trial in running:
            self._watcher.advanced(trial.number, trial.rounds, trial.validation)
        if len(standings) > 1:  # a configuration by itself ends with its job
            self._conclude({trial.number: trial.failed for trial in running if trial.ended})

    def completed(self, trial_id: str, result: dict[str, Any] | None, error: bool) -> None:
        """A job has come to its end, if only because its process died or its time was up."""
        standings = {trial.number: trial for trial in (result or {}).get("trials", ())}
        ended: dict[int, bool] = {}
        for number in self._jobs[trial_id]:
            if number not in self._running:
                continue
            failed = number in standings and standings[number].failed
            if error:
                self._lose(number, trial_id)
            elif result is None or (self.time_is_up and not failed and not self._is_done(number)):
                self._running.discard(number)  # it never started, or goes on in another command
            else:
                ended[number] = failed
        self._conclude(ended)
        if self.is_over and not self._again:
            self._watcher.over()

    def _is_done(self, number: int) -> bool:
        return self.search.is_done(self.journal[number])

    def _conclude(self, ended: Mapping[int, bool]) -> None:
        """Write down how configurations ended, and whether they failed; only then is anything removed."""
        with self.journal.in_one_write():
            trials = [self._write_end(number, failed) for number, failed in ended.items()]
        for trial in trials:
            if trial is not None:
                for folder in self.search.folders(trial):
                    folder.remove_checkpoints()
                self._watcher.ended(trial)

    def _write_end(self, number: int, failed: bool) -> Trial | None:
        """None if its time was up before it was measured: it stays open."""
        self._running.discard(number)
        trial = self.journal[number]
        if failed:
            reason = reason_of(self.search, trial)
            return self.journal.ended(number, "failed", None, rounds_of(self.search, trial), reason)
        if self._is_done(number):
            return settle_done(self.search, self.journal, trial)
        if not (history := self.search.history(trial)):
            return None
        return self.journal.ended(number, "stopped", history[-1][1], rounds_of(self.search, trial))

    def _say_if_apart(self, number: int) -> None:
        """Tell the user why configurations that were one stack are computed one by one."""
        trial = self.journal[number]
        name, _, reason = reason_of(self.search, trial).partition(": ")
        if name == StackError.__name__:
            if reason not in self._said:
                self._said.add(reason)
                self._watcher.said(f"{self.search.method}: {reason}; its trials are computed one by one")
            for folder in self.search.folders(trial):
                folder.forget_failure()

    def _lose(self, number: int, trial_id: str) -> None:
        """Its process came to an end: what failed by itself is concluded, the rest tried again or left open.

        It is not the configuration's fault, as far as anybody can tell.
        """
        alone = len(self._jobs[trial_id]) == 1
        if alone and reason_of(self.search, self.journal[number]):
            self._conclude({number: True})
            return
        self._running.discard(number)
        if not self._is_last_attempt and (not alone or self._deaths.was_for_memory(trial_id)):
            self._say_if_apart(number)
            self._again.append(number)
            return
        beside = ", even when it ran alone" if self._is_last_attempt else ""
        self.lost += 1
        self._watcher.lost(number, f"{DIED}: {self._deaths.reason(trial_id)}{beside}")
