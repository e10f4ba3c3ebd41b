"""`bench study`: one command that tunes, runs and reports over suites, killed twice on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bench
from bench.errors import UserError
from bench.records.reader import load_run
from bench.studies.request import StudyRequest
from tests.kit.cli import (
    assert_one_sentence,
    call_bench,
    files_below,
    kill_session,
    run_bench,
    start_bench,
    wait_until,
    write_suite,
)
from tests.kit.places import REPOSITORY

pytestmark = pytest.mark.xdist_group("clusters")

METHODS = ["fedavg", "fedprox", "moon"]
TRAINING = {"rounds": 3, "epochs": 1, "batch_size": 10, "optimiser": {"name": "sgd", "lr": 0.05}}
PATIENCE = 300
"""Seconds; the machine may be busy with other things."""


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two suites with the same methods on different data."""
    folder = tmp_path_factory.mktemp("suites")
    draw = np.random.default_rng(0)
    arrays = {}
    for domain in ("near", "far"):
        for part, count in (("train", 60), ("test", 30)):
            labels = np.arange(count) % 3
            noise = draw.normal(size=(count, 4))
            arrays[f"{domain}/x_{part}"] = (np.eye(3, 4)[labels] * 2 + noise).astype("float32")
            arrays[f"{domain}/y_{part}"] = labels
    np.savez(folder / "points.npz", allow_pickle=False, **arrays)
    digits = write_suite(folder, suite="digits_two", training=TRAINING, methods=METHODS)
    points = write_suite(
        folder,
        suite="points_two",
        training=TRAINING,
        methods=METHODS,
        dataset={"name": "arrays", "path": str(folder / "points.npz")},
        partition={"name": "by_domain", "clients": 2},
    )
    return digits, points


def arguments(suites: tuple[Path, Path], folder: Path) -> list[object]:
    given = ["study", "--suite", ",".join(map(str, suites)), "--trials", 3, "--seeds", 2]
    given += ["--search-seeds", 1]
    given += ["--search", "random", "--scheduler", "none", "--max-concurrent", 2]
    return [*given, "--out", folder / "runs", "--tuned-dir", folder / "tuned"]


def finished(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The results of all cells, of searches and of runs."""
    return {name: file for name, file in files_below(folder).items() if name.endswith("result.json")}


@pytest.mark.long
def test_a_study_that_is_killed_resumes_where_it_was(suites: tuple[Path, Path], tmp_path: Path) -> None:
    command = arguments(suites, tmp_path)
    runs = tmp_path / "runs"
    for place in ("tune/digits_two/*/cells/*/result.json", "digits_two/cells/*/result.json"):
        process = start_bench(*command, PYTHONPATH=str(REPOSITORY))
        try:
            assert wait_until(lambda place=place: any(runs.glob(place)), PATIENCE)  # type: ignore[misc]
            assert process.poll() is None
        finally:
            kill_session(process)
    before = finished(runs)
    outcome = run_bench(*command, PYTHONPATH=str(REPOSITORY), timeout=PATIENCE)
    assert outcome.code == 0, outcome
    after = finished(runs)
    assert {name: after[name] for name in before} == before  # nothing is done twice
    for suite in ("digits_two", "points_two"):
        run = load_run(runs / suite)
        assert all(cell.result for cell in run.cells)
        labels = {cell.label for cell in run.cells}
        assert {"FedAvg", "FedProx", "MOON"} <= labels
        assert all(label.removesuffix(" (default)") in labels for label in labels)
        assert run.cells[0].tuning is not None and run.cells[0].tuning["trials"] == 3
        assert (runs / suite / "report.html").is_file()
    assert (runs / "merged" / "tables" / "ranking.md").is_file()
    assert "Ranks over digits_two, points_two" in outcome.out

    again = call_bench(*command)
    assert again.code == 0, again
    assert finished(runs) == after
    plan = call_bench(*command, "--dry-run")
    assert plan.out.count("searches: 0 trials to run") == 2
    assert "time: at most about 0.0 min" in plan.out

    result = bench.study(
        [str(file) for file in suites],
        trials=3,
        seeds=2,
        search_seeds=1,
        search="random",
        scheduler="none",
        out=runs,
        tuned_dir=tmp_path / "tuned",
        progress=False,
    )
    assert finished(runs) == after and not result.problems
    assert result.ranking is not None and {row.label for row in result.ranking.rows} >= {"FedAvg", "MOON"}
    assert set(result.tuned["points_two"].tuned) == set(METHODS)
    assert result["digits_two"].table().suite == "digits_two"


def test_a_dry_run_prints_the_plan_and_writes_nothing(suites: tuple[Path, Path], tmp_path: Path) -> None:
    outcome = call_bench(*arguments(suites, tmp_path), "--dry-run")
    assert outcome.code == 0, outcome
    assert "study, suite 2 of 2: points_two" in outcome.out
    assert outcome.out.count("searches: 9 trials to run") == 2
    assert outcome.out.count("run: up to 12 cells: a tuned and a default row per method") == 2
    assert "ranking over 2 suites" in outcome.out and "time: at most about" in outcome.out
    assert not list(tmp_path.iterdir())


def test_missing_data_of_the_last_suite_stop_a_study_before_it_begins(
    suites: tuple[Path, Path], tmp_path: Path
) -> None:
    lost = write_suite(tmp_path, suite="lost", dataset={"name": "arrays", "path": "nowhere.npz"})
    outcome = call_bench(*arguments((suites[0], lost), tmp_path))
    assert_one_sentence(outcome, "nowhere.npz")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"suites": []}, "--suite is empty"),
        ({"suites": ["quickstart", "quickstart"]}, "'quickstart' twice"),
        ({"suites": ["quickstrt"]}, "unknown suite 'quickstrt'"),
        ({"trials": 0}, "--trials 0"),
        ({"seeds": 0}, "--seeds 0"),
        ({"space": "huge"}, "unknown --space"),
    ],
)
def test_a_mistake_costs_a_sentence(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        StudyRequest(**{"suites": ["quickstart"], **changes})  # type: ignore[arg-type]
