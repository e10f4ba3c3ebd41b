"""Ray Tune runs several searches side by side, in processes that are kept until all searches are done.

As long as there are more searches than processes, a search uses one process at a time, so that its
suggestions do not depend on the speed of the other searches. The last searches share the processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from bench.cluster.driver_node import DriverNode
from bench.cluster.failures import ProcessFailures
from bench.cluster.resources import Resources
from bench.search.running_search import Assignment, RunningSearch
from bench.search.trainable import SearchTrainable
from bench.trials.tuner import fit

RETRIES = 2
"""How often a job is retried whose process dies or raises; it resumes from its checkpoints."""


def run_searches(
    assignments: Sequence[Assignment],
    driver_node: DriverNode,
    resources: Resources,
    processes: int,
    seconds: float | None = None,
) -> list[int]:
    """Run these searches to their end and write their journals.

    `seconds` is the time for all of them. Returns how many trials of each search stay open because their
    process died too often.
    """
    failures = ProcessFailures()
    searches = [RunningSearch(each, driver_node, failures) for each in assignments]
    # One more job than processes, so that a free process finds its next job waiting. Not where that job
    # would have room to run (--max-concurrent), or would use up its search's time while it waits.
    stacked = any(running.stacks for running in searches)
    waits = resources.max_concurrent != processes and not (stacked and seconds)
    turns = _Turns(searches, processes, seconds)
    _attempt(turns, resources, driver_node.scratch, failures, processes + 1 if waits else processes)
    left = [running for running in searches if running.wants_another_attempt]
    for running in left:
        running.try_again()
    if left:
        _attempt(_Turns(left, 1, None), resources, driver_node.scratch, failures, at_once=1)
    return [running.lost for running in searches]


def _attempt(
    turns: _Turns, resources: Resources, scratch: Path, failures: ProcessFailures, at_once: int
) -> None:
    fit(
        SearchTrainable,
        resources,
        scratch,
        RETRIES,
        tuning={
            "metric": "validation",
            "mode": "max",
            "search_alg": turns,
            "scheduler": _EarlyStops(turns.search_of),
            "num_samples": -1,
            "max_concurrent_trials": at_once,
            "time_budget_s": turns.seconds,
        },
        callbacks=[failures],
    )


class _Turns(Searcher):
    """Ray Tune's searcher: asks the search whose turn it is for the next job, and passes results on."""

    def __init__(self, searches: Sequence[RunningSearch], processes: int, seconds: float | None) -> None:
        super().__init__(metric="validation", mode="max")
        self._searches, self._processes = searches, processes
        self.seconds = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._by_trial: dict[str, RunningSearch] = {}
        """By the ids of Tune's trials, which are jobs here."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing, for the copy that Tune makes on disk: the journals are there already."""
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
                continue  # by the time a stack can start, there is more to learn from
            self._give_time(running, left)
            if job := running.next_job(trial_id, processes=each):
                self._by_trial[trial_id] = running
                return {"job": job}
        waits = all_busy or any(running.may_go_on for running in left)
        return None if waits else Searcher.FINISHED

    def _in_turn(self, left: Sequence[RunningSearch]) -> list[RunningSearch]:
        """Those that run now, and one more, by their number of jobs; then those that wait."""
        first, others = left[: self._processes + 1], left[self._processes + 1 :]
        return [*sorted(first, key=lambda running: running.jobs_running), *others]

    def _give_time(self, running: RunningSearch, left: Sequence[RunningSearch]) -> None:
        """Give a search that begins an equal part of the time left, if as many run side by side as can."""
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


class _EarlyStops(FIFOScheduler):
    """Ray Tune's scheduler: asks the search that a job belongs to whether to stop it."""

    def __init__(self, search_of: Callable[[str], RunningSearch]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._search_of = search_of

    def __getstate__(self) -> dict[str, Any]:
        """Nothing, for the copy that Tune makes on disk: what it knows is in the journals."""
        return {}

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        running = self._search_of(trial.trial_id)
        stops = running.stops(trial.trial_id, result["measured"], result["validation"])
        return self.STOP if stops else self.CONTINUE
