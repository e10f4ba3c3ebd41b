"""Searches on Ray: packed on a GPU by share, early stops, budgets of rounds, trials that fail.

In one session of Ray and with few workers, since every search starts new ones, and that is what takes time.
Ray counts GPUs without looking at them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.search.tuned import load_tuned
from tests.kit.cli import Outcome, assert_one_sentence, environment
from tests.kit.places import REPOSITORY
from tests.kit.tune import Package, journal, tiny_suite

pytestmark = pytest.mark.xdist_group("ray")

SESSION = """
import json, sys
from pathlib import Path
from bench.scheduling.cluster import start_ray
from tests.kit.cli import call_bench
from tests.kit.tune import Package

folder = Path(sys.argv[1])
package = Package(folder / "site")
start_ray(cpus=8, gpus=1)


def tune(name, *more):
    command = ["tune", "--suite", folder / "tiny.yaml", "--method", "steady", "--out", folder / name]
    command += ["--tracking-uri", f"sqlite:///{folder}/mlflow.db"]
    variables = {"PYTHONPATH": package.path}
    return call_bench(*command, "--tuned-dir", folder / name / "tuned", *more, **variables)


outcomes = {}
package.together(3)
few = ["--rounds", "1", "--trials", "3", "--scheduler", "none"]
outcomes["shared"] = tune("shared", *few, "--gpus-per-trial", "0.3")
package.keep("shared")
package.alone()
outcomes["greedy"] = tune("greedy", "--gpus-per-trial", "2")
rates = "training.optimiser.lr=1e30,1e31,0.05"
grid = ["--space", "paper", "--search", "grid", "--sweep", rates, "--sweep", "steady.shift=0.5,0.6"]
cpu = ["--gpus-per-trial", "0", "--max-concurrent", "1", "--scheduler", "none", "--rounds", "2"]
outcomes["diverging"] = tune("diverging", *grid, *cpu, "--trials", "20")
outcomes["giving up"] = tune("giving up", *grid, *cpu, "--trials", "20", "--max-failures", "2")
asha = ["--gpus-per-trial", "0", "--max-concurrent", "2", "--search", "random", "--rounds", "9"]
outcomes["rounds"] = tune("rounds", *asha, "--trials", "6", "--budget", "rounds")
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tune-ray")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, Outcome]:
    package = Package(folder / "site")
    tiny_suite(folder, rounds=2)
    done = subprocess.run(
        [sys.executable, "-c", SESSION, folder],
        env=environment(PYTHONPATH=f"{package.path}:{REPOSITORY}"),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    return {name: Outcome(*outcome) for name, outcome in json.loads(done.stdout.splitlines()[-1]).items()}


def trials_of(folder: Path, name: str) -> dict[int, dict[str, Any]]:
    (search,) = (folder / name / "tune" / "tiny").glob("steady-*")
    return journal(search)


def most_at_once(folder: Path, name: str) -> int:
    lines = [json.loads(line) for line in (folder / "site" / f"done-{name}.jsonl").read_text().splitlines()]
    return max(sum(other["started"] <= line["started"] < other["ended"] for other in lines) for line in lines)


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
    assert "the search of steady was ended: 2 trials failed with 'diverged'" in outcomes["giving up"].out
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
