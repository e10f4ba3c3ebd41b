"""`--seeds auto`: how exact a score is, who runs with further seeds, and what is chosen in the end."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.search.journal import Trial
from bench.search.plan import Search, make_search
from bench.search.selection import cells_at, effective_samples, folder_of, select, standard_error
from bench.suite.planning import PlannedCell
from tests.kit.cli import read
from tests.kit.tune import suite

RATES = (0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
MANY, FEW = 1e9, 1.0
"""Samples: a score is exact, or says next to nothing."""


def test_with_one_seed_the_error_is_that_of_a_share_of_samples() -> None:
    assert standard_error([[0.8], [0.8]], samples=100) == pytest.approx(0.04)
    assert standard_error([[1.0], [1.0]], samples=100) == 0


def test_with_several_seeds_the_larger_variance_counts() -> None:
    scores = [[0.5, 0.7], [0.4, 0.8]]  # sample variances 0.02 and 0.08
    assert standard_error(scores, samples=1e9) == pytest.approx(math.sqrt(0.05 / 2))
    assert standard_error([[0.6, 0.6]], samples=24) == pytest.approx(math.sqrt(0.24 / 24 / 2))


def test_a_mean_over_clients_is_worth_as_many_samples_as_vary_as_much() -> None:
    assert effective_samples([[10, 10, 10, 10]]) == pytest.approx(40)
    assert effective_samples([[10, 10], [10, 10]]) == pytest.approx(40), "two settings"
    assert effective_samples([[1, 1000]]) == pytest.approx(4 / 1.001), "the small client's luck decides"


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return make_search(suite("fedavg"), 0, "wide", "random", "none", 0, tmp_path)


def trials_of(scores: dict[int, float]) -> list[Trial]:
    return [
        Trial(number, {"optimiser.lr": RATES[number]} if number else {}, "finished", score, 4)
        for number, score in scores.items()
    ]


TRIALS = trials_of({0: 0.30, 1: 0.50, 2: 0.49, 3: 0.48, 4: 0.31, 5: 0.20})


def compute(search: Search, cells: list[PlannedCell]) -> None:
    for cell in cells:
        run = CellRun(CellFolder(search.directory / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()


def test_exact_scores_need_no_further_seed(search: Search) -> None:
    found = select(search, TRIALS, MANY, auto=True)
    assert found is not None and found.stands
    assert found.seeds == 1 and found.spread == pytest.approx(0.02)
    assert [each.trial.number for each in found.candidates] == [1, 2, 3, 4, 0, 5]


def test_a_given_number_of_seeds_is_left_as_it_is(search: Search) -> None:
    found = select(search, TRIALS, FEW, auto=False)
    assert found is not None and found.stands and found.seeds == 1


def test_the_best_three_and_the_default_need_the_same_further_seed(search: Search) -> None:
    found = select(search, TRIALS, FEW, auto=True)
    assert found is not None and not found.stands
    wanted = {cell.cell_id for number in (0, 1, 2, 3) for cell in cells_at(search, TRIALS[number], 1)}
    assert {cell.cell_id for cell in found.missing} == wanted
    assert {cell.seed for cell in found.missing} == {1}
    known = {cell.cell_id for trial in TRIALS for cell in search.cells(trial.values)}
    assert not wanted & known


def test_a_quarter_of_many_trials_is_compared(search: Search) -> None:
    trials = [
        Trial(n, {"optimiser.lr": 0.001 * n} if n else {}, "finished", 0.5 + n / 1e4, 4) for n in range(17)
    ]
    found = select(search, trials, FEW, auto=True)
    assert found is not None
    assert len(found.missing) == 5 + 1, "a quarter of 17, rounded up, and the default"


def test_seeds_are_added_one_by_one_up_to_five_and_the_best_mean_is_chosen(search: Search) -> None:
    seeds = 1
    while True:
        found = select(search, TRIALS, FEW, auto=True)
        assert found is not None and found.seeds == seeds
        if found.stands:
            break
        compute(search, list(found.missing))
        seeds += 1
    assert seeds == 5 and found.standard_error > found.spread
    means = {
        number: fmean(
            [TRIALS[number].validation or 0]
            + [
                read(folder_of(search, cell).path / "result.json")["final"]["validation"]
                for seed in range(1, 5)
                for cell in cells_at(search, TRIALS[number], seed)
            ]
        )
        for number in (0, 1, 2, 3)
    }
    chosen = {each.trial.number: each.validation for each in found.candidates}
    assert chosen == {number: pytest.approx(mean) for number, mean in means.items()}
    assert found.candidates[0].validation == max(chosen.values())


def test_a_finalist_that_fails_is_not_chosen_and_a_failed_default_is_said(search: Search) -> None:
    found = select(search, TRIALS, FEW, auto=True)
    assert found is not None
    (first,) = cells_at(search, TRIALS[1], 1)
    (default,) = cells_at(search, TRIALS[0], 1)
    folder_of(search, first).fail(ValueError("no luck"))
    compute(search, [cell for cell in found.missing if cell.cell_id != first.cell_id])
    after = select(search, TRIALS, FEW, auto=True)
    assert after is not None and after.seeds == 2
    assert 1 not in {each.trial.number for each in after.candidates}
    (folder_of(search, default).path / "result.json").unlink()
    folder_of(search, default).fail(ValueError("no luck"))
    lost = select(search, TRIALS, FEW, auto=True)
    assert lost is not None and not lost.stands
    assert lost.failed == "seed 1: ValueError: no luck"


def test_without_a_score_of_the_default_nothing_is_chosen(search: Search) -> None:
    assert select(search, TRIALS[1:], FEW, auto=True) is None
