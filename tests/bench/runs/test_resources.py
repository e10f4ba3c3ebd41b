"""What a trial may use: shares of CPUs and GPUs, and a machine that does not have them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.cli import Outcome, assert_one_sentence, environment, write_suite
from tests.kit.places import REPOSITORY

pytestmark = pytest.mark.xdist_group("ray")

# In one process, since it is the imports that take time. Ray counts GPUs without looking at them.
SESSION = """
import json, sys
from bench.scheduling.cluster import nodes, start_ray
from bench.scheduling.resources import Resources
from tests.kit.cli import call_bench

folder, suite = sys.argv[1:]
start_ray(cpus=8, gpus=1)
fits = {gpus: Resources(gpus=gpus).at_once(nodes()) for gpus in (0.1, 0.25, 0.3, 1, 2)}
greedy = call_bench("run", "--suite", suite, "--out", f"{folder}/runs", "--gpus-per-trial", "2")
doctor = call_bench("doctor", "--data-root", f"{folder}/nowhere", "--out", f"{folder}/runs")
print(json.dumps({"fits": fits, "greedy": greedy, "doctor": doctor}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("resources")


@pytest.fixture(scope="module")
def session(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SESSION, folder, write_suite(folder)],
        env=environment(PYTHONPATH=str(REPOSITORY)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=240,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_trials_share_a_gpu(session: dict[str, Any]) -> None:
    """Eight CPUs and one GPU; a trial has one CPU."""
    assert session["fits"] == {"0.1": 8, "0.25": 4, "0.3": 3, "1": 1, "2": 0}


def test_a_trial_that_fits_nowhere_is_refused_at_once(session: dict[str, Any], folder: Path) -> None:
    expected = "a trial needs 1 CPU, 2 GPU but Ray has 8 CPU, 1 GPU"
    assert_one_sentence(Outcome(*session["greedy"]), expected, "--gpus-per-trial")
    assert not (folder / "runs").exists()


def test_the_doctor_looks_at_everything_and_finds_what_is_missing(
    session: dict[str, Any], folder: Path
) -> None:
    outcome = Outcome(*session["doctor"])
    assert (outcome.code, outcome.err) == (1, "")
    lines = outcome.out.splitlines()
    good = [line for line in lines if line.startswith("ok ")]
    (bad,) = [line for line in lines if line not in good]
    assert bad.startswith("bad ") and str(folder / "nowhere") in bad
    for finding in ("torch ", "torchvision ", "ray ", "mlflow ", "CPU", "GB free", "digits", "8 CPU, 1 GPU"):
        assert any(finding in line for line in good), finding
