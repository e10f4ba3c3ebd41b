"""One setting for all suites: the same trials in each, the best mean over the suites."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from bench.api.observer import QUIET
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.runs.plan import plan_of
from bench.runs.request import RunRequest
from bench.search.request import TuneRequest
from bench.search.shared import SharedOutcome, shared_searches, tune_shared
from bench.suite.sweep_cells import row_settings, value_at
from tests.kit.cli import TINY, write_suite

TRIALS = 3


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[TuneRequest]:
    folder = tmp_path_factory.mktemp("shared")
    training = TINY["training"] | {"rounds": 2}
    slow = training | {"optimiser": {"name": "sgd", "lr": 0.001}}
    options: dict[str, Any] = {"trials": TRIALS, "out": folder / "runs", "tuned_dir": folder / "tuned"}
    files = [
        write_suite(
            folder, suite="first", training=training, methods=["fedavg", "fedprox", "local"], seeds=1
        ),
        write_suite(folder, suite="second", training=slow, methods=["fedprox", "fedavg"], seeds=1),
    ]
    return [TuneRequest(str(file), **options) for file in files]


@pytest.fixture(scope="module")
def outcome(requests: list[TuneRequest]) -> SharedOutcome:
    """Computed here, without Ray."""
    for search in [search for own in shared_searches(requests)[1] for search in own]:
        journal = search.journal()
        for number in range(TRIALS):
            values = search.suggestion(number, journal.trials)
            assert values is not None
            journal.suggested(number, values)
            for cell in search.cells(values):
                run = CellRun(CellFolder(search.directory / cell.directory), cell.config, Conditions())
                while not run.done:
                    run.advance()
    return tune_shared(requests, QUIET)


def test_the_same_configurations_are_tried_in_every_suite(
    requests: list[TuneRequest], outcome: SharedOutcome
) -> None:
    _, (first, second), left_out = shared_searches(requests)
    assert [search.row for search in first] == [search.row for search in second] == ["FedAvg", "FedProx"]
    assert left_out == list(outcome.left_out) == ["Local"]
    for ours, theirs in zip(first, second, strict=True):
        tried = [[trial.values for trial in search.journal().trials[1:]] for search in (ours, theirs)]
        assert tried[0] == tried[1] and len(tried[0]) == TRIALS - 1


def test_the_best_mean_of_normalised_scores_is_chosen(
    requests: list[TuneRequest], outcome: SharedOutcome
) -> None:
    _, searches, _ = shared_searches(requests)
    scores = [
        [[trial.validation or 0 for trial in each.journal().trials] for each in own] for own in searches
    ]
    best = [max(max(row) for row in rows) for rows in scores]
    for place, found in enumerate(outcome.chosen):
        journals = [own[place].journal().trials for own in searches]
        # trial 0 is each suite's own default, with another learning rate, so it is no candidate
        means = {
            number: fmean(rows[place][number] / top for rows, top in zip(scores, best, strict=True))
            for number in range(1, TRIALS)
        }
        winner = max(means, key=lambda number: means[number])
        assert found.set == journals[0][winner].values
        assert found.score == pytest.approx(means[winner], abs=1e-12)
        assert found.suites["second"].validation == journals[1][winner].validation


def test_a_run_uses_the_shared_values_and_the_file_of_the_suite_stays_its_own(
    requests: list[TuneRequest], outcome: SharedOutcome
) -> None:
    folder = requests[0].tuned_dir
    assert sorted(file.relative_to(folder).as_posix() for file in outcome.files) == [
        "shared/fedavg.yaml",
        "shared/fedprox.yaml",
    ]
    assert not (folder / "first").exists()  # what the suite's own search would write
    plan = plan_of(RunRequest(requests[1].suite, tuned="shared", tuned_dir=folder, out=requests[1].out))
    by_row = {found.row: found.set for found in outcome.chosen}
    for cell in plan.cells:
        settings = row_settings(cell.config)
        assert {key: value_at(settings, key) for key in by_row[cell.label]} == by_row[cell.label]
    assert plan.tuning and plan.tuning["suites"] == "first, second"
    assert plan.tuning["methods"]["FedAvg"]["shared_by"] == ["first", "second"]


def test_what_cannot_be_shared_is_one_sentence(requests: list[TuneRequest]) -> None:
    with pytest.raises(UserError, match="give them as --suite A,B"):
        shared_searches(requests[:1])
    with pytest.raises(UserError, match="have no row in common"):
        shared_searches([requests[1], TuneRequest(requests[0].suite, methods=["local"])])
    with pytest.raises(UserError, match=r"--tuned shared: MOON has no .*moon\.yaml"):
        options: dict[str, Any] = {"tuned": "shared", "tuned_dir": requests[0].tuned_dir}
        plan_of(RunRequest(requests[0].suite, methods=["moon"], **options))
