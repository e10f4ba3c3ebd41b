"""Early stops by successive halving: rungs, who continues, and what a resumed search knows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ray.tune.schedulers import ASHAScheduler

from bench.search.halving import REDUCTION, Halving, rule, rungs


@pytest.mark.parametrize(
    ("every", "rounds", "expected"),
    [(1, 5, [1, 3]), (1, 6, [2]), (2, 9, [2, 6]), (13, 100, [26, 78]), (1, 1, []), (2, 2, []), (2, 3, [2])],
)
def test_rungs_are_measured_rounds_between_a_fifth_and_the_last(
    every: int, rounds: int, expected: list[int]
) -> None:
    assert rungs(every, rounds) == expected


def test_the_rule_in_words_names_the_rungs() -> None:
    assert rule(13, 100) == "asha after round 26 and 78, at least one trial in 3 runs to the end"
    assert rule(2, 2) == "none, since a trial is measured only at its end"


def test_a_trial_is_compared_with_those_that_were_there_before() -> None:
    halving = Halving(1, 5)
    assert not halving.stops(1, 1, 0.1), "the first one continues"
    assert halving.stops(2, 1, 0.05)
    assert not halving.stops(3, 1, 0.3)
    assert halving.stops(4, 1, 0.1), "two thirds of 0.05, 0.1 and 0.3 are below 0.167"


def test_a_third_of_the_trials_continue_even_if_each_is_worse_than_those_before_it() -> None:
    halving = Halving(1, 6)
    continued = [number for number in range(8) if not halving.stops(number, 2, 0.9 - number / 10)]
    assert continued == [0, 3, 6], "of 8 trials of 6 rounds, which are compared after round 2"


@pytest.mark.parametrize("seed", range(20))
def test_at_least_a_third_of_any_groups_run_to_the_end(seed: int) -> None:
    draw = np.random.default_rng(seed)
    halving, number, finished = Halving(1, 40), 1, 0
    while number <= 30:
        group = {number + place: float(draw.random()) - number for place in range(int(draw.integers(1, 6)))}
        number += len(group)
        for rung in rungs(1, 40):
            for stopped in halving.stopped(rung, group):
                del group[stopped]
        finished += len(group)
        assert finished >= (number - 1) / REDUCTION, "later ones are always worse, and some continue"


def test_a_trial_is_judged_at_rungs_only_and_once_at_each() -> None:
    halving = Halving(1, 5)
    halving.record(1, [(1, 0.9), (3, 0.9)])
    assert not halving.stops(2, 2, 0.0) and not halving.stops(2, 4, 0.0)
    assert halving.stops(2, 3, 0.0)
    assert not halving.stops(2, 3, 0.0), "it was judged at this rung"


@pytest.mark.parametrize("seed", range(20))
def test_single_trials_are_stopped_as_ray_tune_would(seed: int) -> None:
    """Trials advance in any order and report some measurements twice; a stopped one reports no more."""
    draw = np.random.default_rng(seed)
    rounds = int(draw.integers(2, 120))
    every = -(-rounds // 8)
    first = rungs(every, rounds)[0] if rungs(every, rounds) else rounds
    reference = ASHAScheduler(
        time_attr="measured",
        metric="validation",
        mode="max",
        max_t=rounds,
        grace_period=first,
        reduction_factor=REDUCTION,
        brackets=1,
    )
    halving = Halving(every, rounds)
    trials = {number: SimpleNamespace(trial_id=str(number)) for number in range(1, 31)}
    for trial in trials.values():
        reference.on_trial_add(None, trial)  # type: ignore[arg-type]
    running, measured = list(trials), dict.fromkeys(trials, every)
    reached: set[int] = set()
    stopped = kept = 0
    while running:
        number = int(draw.choice(running))
        if measured[number] >= rounds:
            running.remove(number)
            continue
        accuracy = float(draw.integers(0, 40)) / 40  # with ties
        result = {"measured": measured[number], "validation": accuracy}
        for _ in range(int(draw.integers(1, 3))):
            decision = reference.on_trial_result(None, trials[number], result)  # type: ignore[arg-type]
            ours = halving.stops(number, measured[number], accuracy)
            reached |= {number} if measured[number] == first else set()
            if ours != (decision == reference.STOP):
                assert not ours and stopped == 2 * len(reached) // 3, "a third must continue"
                running.remove(number)  # Ray's trial is over
                kept += 1
                break
            if ours:
                running.remove(number)
                stopped += 1
                break
        measured[number] += every
    assert stopped > kept or rounds == first


def test_trials_that_arrive_together_are_compared_with_each_other_and_with_earlier_ones() -> None:
    halving = Halving(2, 9)
    together = dict(zip(range(1, 10), np.linspace(0.1, 0.9, 9).tolist(), strict=True))
    assert halving.stopped(2, together) == [1, 2, 3, 4, 5, 6]
    assert halving.stopped(2, {7: 0.7, 8: 0.8, 9: 0.9}) == [], "they were judged at this rung"
    assert halving.stopped(4, {7: 0.7, 8: 0.8, 9: 0.9}) == [], "no rung"
    assert halving.stopped(2, {10: 0.65, 11: 0.75}) == [10], "two thirds of all eleven are below 0.67"


@pytest.mark.parametrize("seed", range(20))
def test_the_best_third_of_all_at_a_rung_continues(seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, together = draw.random(int(draw.integers(0, 12))), draw.random(int(draw.integers(1, 12)))
    halving = Halving(1, 5)
    for number, accuracy in enumerate(before, start=100):
        halving.record(number, [(1, accuracy)])
    found = halving.stopped(1, dict(enumerate(together.tolist(), start=1)))
    everyone = np.sort([*before, *together])
    place = (len(everyone) - 1) * (1 - 1 / REDUCTION)  # between two of them, unless it is whole
    below, above = everyone[int(place)], everyone[int(np.ceil(place))]
    least = below + (above - below) * (place % 1)
    assert found == [number for number, accuracy in enumerate(together, start=1) if accuracy < least]


def test_the_default_is_never_stopped_but_counts() -> None:
    halving = Halving(1, 5)
    halving.record(1, [(1, 0.9)])
    assert not halving.stops(0, 1, 0.5)
    assert not halving.stops(2, 1, 0.8), "two thirds of the way from 0.5 to 0.9 are 0.77"
    assert Halving(1, 5).stopped(1, {0: 0.1, 1: 0.5, 2: 0.9}) == [1]


def test_recorded_histories_count_as_if_they_had_been_reported() -> None:
    """What a search that goes on reads from its cells' records."""
    histories = {
        1: [(1, 0.2), (2, 0.1), (3, 0.3)],
        2: [(1, 0.5), (2, 0.6), (3, 0.7), (8, 0.1)],
        3: [(1, 0.4)],
    }
    reported, recorded = Halving(1, 5), Halving(1, 5)
    for trial, history in histories.items():
        recorded.record(trial, history)
        for number, accuracy in history:
            reported.stops(trial, number, accuracy)
    for number, accuracy in [(1, 0.3), (1, 0.45), (3, 0.5), (3, 0.65)]:
        trial = int(1000 * accuracy)
        assert reported.stops(trial, number, accuracy) == recorded.stops(trial, number, accuracy)
    assert not recorded.stops(3, 1, 0.0), "it was judged there before"
