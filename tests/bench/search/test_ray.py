"""Searches on Ray: packed on a GPU by share, early stops, budgets of rounds, trials that fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.search.tuned import load_tuned
from tests.kit.cli import Outcome, assert_one_sentence
from tests.kit.tune import journal

pytestmark = pytest.mark.xdist_group("clusters")


@pytest.fixture(scope="module")
def folder(gpu_session: tuple[Path, dict[str, Any]]) -> Path:
    return gpu_session[0]


@pytest.fixture(scope="module")
def outcomes(gpu_session: tuple[Path, dict[str, Any]]) -> dict[str, Outcome]:
    names = ("shared", "greedy", "diverging", "giving up", "rounds")
    return {name: Outcome(*gpu_session[1][name]) for name in names}


def trials_of(folder: Path, name: str) -> dict[int, dict[str, Any]]:
    (search,) = (folder / name / "tune" / "tiny").glob("steady-*")
    return journal(search)


def most_at_once(folder: Path, name: str) -> int:
    lines = [json.loads(line) for line in (folder / "site" / f"done-{name}.jsonl").read_text().splitlines()]
    spans: list[tuple[float, float]] = [(line["started"], line["ended"]) for line in lines]
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)


def test_trials_share_a_gpu(outcomes: dict[str, Outcome], folder: Path) -> None:
    """They wait for each other, so a search with less room would never end."""
    assert (outcomes["shared"].code, outcomes["shared"].err) == (0, "")
    expected = "resources: 1 CPU, 0.3 GPU per trial; 3 at once (Ray has 8 CPU and 1 GPU)"
    assert expected in outcomes["shared"].out
    assert most_at_once(folder, "shared") == 3
    assert {trial["outcome"] for trial in trials_of(folder, "shared").values()} == {"finished"}


def test_a_trial_that_fits_nowhere_is_refused(outcomes: dict[str, Outcome]) -> None:
    expected = "a trial needs 1 CPU, 2 GPU but Ray has 8 CPU, 1 GPU"
    assert_one_sentence(outcomes["greedy"], expected, "--gpus-per-trial")


def test_a_trial_that_diverges_is_recorded_and_the_search_goes_on(
    outcomes: dict[str, Outcome], folder: Path
) -> None:
    """Two shifts with two rates that no model survives and one that is fine, which is the default's."""
    assert outcomes["diverging"].code == 0, outcomes["diverging"]
    trials = trials_of(folder, "diverging")
    assert len(trials) == 6
    failed = [trial for trial in trials.values() if trial["outcome"] == "failed"]
    assert sorted(trial["values"]["optimiser.lr"] for trial in failed) == [1e30, 1e30, 1e31, 1e31]
    assert all(trial["reason"].startswith("diverged: every client's reply of round 1") for trial in failed)
    tuned = load_tuned(folder / "diverging" / "tuned" / "tiny" / "steady.yaml")
    assert (tuned.budget.failed, tuned.budget.finished) == (4, 2)
    assert tuned.best.set.get("optimiser.lr", 0.05) == 0.05


def test_failures_of_one_kind_end_the_search(outcomes: dict[str, Outcome], folder: Path) -> None:
    assert outcomes["giving up"].code == 1
    assert "the search of Steady was ended: 2 trials failed with 'diverged'" in outcomes["giving up"].out
    assert len(trials_of(folder, "giving up")) < 6


def test_early_stops_make_room_for_further_trials(outcomes: dict[str, Outcome], folder: Path) -> None:
    assert outcomes["rounds"].code == 0, outcomes["rounds"]
    trials = trials_of(folder, "rounds")
    spent = sum(trial["rounds"] for trial in trials.values())
    stopped = [trial for trial in trials.values() if trial["outcome"] == "stopped"]
    assert trials[0]["outcome"] == "finished"
    assert 6 * 9 - 9 < spent <= 6 * 9
    assert {trial["rounds"] for trial in stopped} <= {2, 6}, "the rungs of nine rounds"
    assert len(trials) > 6 or not stopped
