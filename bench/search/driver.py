"""Ray Tune runs the searches of a request side by side, in processes that are kept until all are done.

Every search has a process of its own as long as there are more searches than processes, so that what it
learns from its trials does not depend on how quick others are. Those that are left share the processes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from bench.scheduling.deaths import Deaths
from bench.scheduling.fitting import fit
from bench.scheduling.home import Home
from bench.scheduling.resources import Resources
from bench.search.job import SearchTrial
from bench.search.rungs import EarlyStops
from bench.search.running import Assignment, RunningSearch

RETRIES = 2
"""Of a trial whose process dies or that raises; it goes on from its checkpoints."""


def run_searches(
    assignments: Sequence[Assignment],
    home: Home,
    resources: Resources,
    processes: int,
    seconds: float | None = None,
) -> list[int]:
    """Run what is missing of these searches; what happened to each trial is in the journals.

    `seconds` is the time for all of them. Returns for each search how many trials lost their process more
    often than they are retried, and stay open.
    """
    deaths = Deaths()
    searches = [RunningSearch(each, home, deaths) for each in assignments]
    # One trial waits while the others run, so that a process that is done goes on with it at once. It
    # would run, too, if there is more room than may be used, and would use up the time of its search.
    stacked = any(running.stacks for running in searches)
    waits = resources.max_concurrent != processes and not (stacked and seconds)
    turns = _Turns(searches, processes, seconds)
    _attempt(turns, resources, home.scratch, deaths, processes + 1 if waits else processes)
    left = [running for running in searches if running.wants_another_attempt]
    for running in left:
        running.try_again()
    if left:
        _attempt(_Turns(left, 1, None), resources, home.scratch, deaths, at_once=1)
    return [running.lost for running in searches]


def _attempt(turns: _Turns, resources: Resources, scratch: Path, deaths: Deaths, at_once: int) -> None:
    fit(
        SearchTrial,
        resources,
        scratch,
        RETRIES,
        tuning={
            "metric": "validation",
            "mode": "max",
            "search_alg": turns,
            "scheduler": EarlyStops(turns.search_of),
            "num_samples": -1,
            "max_concurrent_trials": at_once,
            "time_budget_s": turns.seconds,
        },
        callbacks=[deaths],
    )


class _Turns(Searcher):
    """Ray Tune's side of the journals: says whose turn it is, and passes results on."""

    def __init__(self, searches: Sequence[RunningSearch], processes: int, seconds: float | None) -> None:
        super().__init__(metric="validation", mode="max")
        self._searches, self._processes = searches, processes
        self.seconds = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._by_trial: dict[str, RunningSearch] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Tune copies its searcher to disk; the journals are there already."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Nothing to do here: see `Journal`."""

    def search_of(self, trial_id: str) -> RunningSearch:
        return self._by_trial[trial_id]

    def suggest(self, trial_id: str) -> Any:
        left = [running for running in self._searches if not running.is_over]
        active = sum(running.has_more or running.jobs_running > 0 for running in left)
        each = max(1, self._processes // max(1, active))
        all_busy = sum(running.jobs_running for running in left) >= self._processes
        for running in self._in_turn(left):
            if all_busy and running.stacks and running.jobs_running:
                continue  # a stack that waits had better be suggested when there is something to learn from
            self._give_time(running, left)
            if job := running.next_job(trial_id, processes=each):
                self._by_trial[trial_id] = running
                return {"job": job}
        waits = all_busy or any(running.may_go_on for running in left)
        return None if waits else Searcher.FINISHED

    def _in_turn(self, left: Sequence[RunningSearch]) -> list[RunningSearch]:
        """First those that have the fewest processes, of as many as can run and one that waits."""
        first, others = left[: self._processes + 1], left[self._processes + 1 :]
        return [*sorted(first, key=lambda running: running.jobs_running), *others]

    def _give_time(self, running: RunningSearch, left: Sequence[RunningSearch]) -> None:
        """An equal part of the time that is left, as many searches running side by side as there can be."""
        if self._deadline is None or running.has_begun:
            return
        waiting = sum(not each.has_begun for each in left)
        turns = -(-waiting // min(self._processes, len(left)))
        running.end_after(max(1.0, (self._deadline - time.monotonic()) / turns))

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self._by_trial[trial_id].advanced(result["trials"])

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        self._by_trial[trial_id].completed(trial_id, result, error)
