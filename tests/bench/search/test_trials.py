"""Trials that one process trains together: who is stopped early, who fails, and what a retry finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bench.engine.conditions import Conditions
from bench.search.halving import Halving
from bench.search.journal import Trial
from bench.search.plan import Search
from bench.search.trial import TrialBatch
from tests.kit.cli import TINY
from tests.kit.tune import one_search, suite

ROUNDS, RUNGS = 9, (2, 6)
RATES = (0.05, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Of trials 0, 1, …; the first is the suite's own."""


@pytest.fixture
def search(tmp_path: Path) -> Search:
    training = TINY["training"] | {"rounds": ROUNDS}
    return one_search(
        suite("fedavg", training=training, seeds=2), "fedavg", "wide", "random", "asha", 0, tmp_path
    )


def trials_of(search: Search, rates: Mapping[int, float]) -> list[Trial]:
    return [Trial(number, {"optimiser.lr": rate}) for number, rate in rates.items()]


def opened(search: Search, trials: list[Trial], halving: Halving | None, often: float = 60) -> TrialBatch:
    cells = {
        trial.number: [
            (folder, cell.config)
            for folder, cell in zip(search.folders(trial), search.cells(trial.values), strict=True)
        ]
        for trial in trials
    }
    return TrialBatch(cells, Conditions(executor="stacked", checkpoint_seconds=often), halving)


def completed(batch: TrialBatch) -> TrialBatch:
    while not batch.done:
        batch.advance()
    batch.close()
    return batch


def halving_of(search: Search) -> Halving:
    return Halving(search.measured_every, search.rounds)


def test_the_best_third_of_both_seeds_mean_continues_and_a_third_finish(search: Search) -> None:
    trials = trials_of(search, dict(enumerate(RATES)))
    batch = completed(opened(search, trials, halving_of(search)))
    histories = {trial.number: dict(search.history(trial)) for trial in trials}
    running = set(histories)
    for rung in RUNGS:
        least = np.percentile([histories[number][rung] for number in running], 100 * 2 / 3)
        below = {number for number in running if number and histories[number][rung] < least}
        stopped = {run.number for run in batch.trials if run.stopped and run.rounds == rung}
        assert stopped <= below
        assert stopped == below or len(running - stopped) == 3, "3 is a third of 7, rounded up"
        running -= stopped
    assert {trial.number for trial in trials if search.is_done(trial)} == running
    assert 0 in running and len(running) == 3, "with the default"


def test_without_early_stops_all_run_to_the_end(search: Search) -> None:
    trials = trials_of(search, {0: 0.05, 1: 0.001})
    assert [run.rounds for run in completed(opened(search, trials, None)).trials] == [ROUNDS, ROUNDS]
    assert all(search.is_done(trial) for trial in trials)


def test_a_trial_that_diverges_ends_by_itself(search: Search) -> None:
    trials = trials_of(search, {1: 0.05, 2: 1e30})
    fine, diverged = completed(opened(search, trials, None)).trials
    assert (fine.failure, fine.rounds) == (None, ROUNDS)
    assert "round 1" in str(diverged.failure)
    assert [folder.failure() is None for folder in search.folders(trials[1])] == [False, True]


def test_a_second_attempt_stops_the_same_trials(search: Search) -> None:
    """The process died between two rungs, before the driver had written down who was stopped."""
    trials = trials_of(search, dict(enumerate(RATES)))
    first = opened(search, trials, halving_of(search), often=0)
    while not any(run.stopped for run in first.trials):
        first.advance()
    first.close()
    again = completed(opened(search, trials, halving_of(search)))
    stopped = {run.number for run in first.trials if run.stopped}
    assert stopped == {run.number for run in again.trials if run.stopped and run.rounds == RUNGS[0]}
