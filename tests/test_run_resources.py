"""What a trial may use: shares of CPUs and GPUs, and machines that do not have them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import environment, run_bench, write_suite

pytestmark = pytest.mark.xdist_group("ray")

LOGICAL_GPU = """
import json, sys
import ray
from bench.cli import main
from bench.tuning import Resources, start_ray

start_ray(cpus=8, gpus=1)
cluster = ray.cluster_resources()
print(json.dumps([Resources(gpus=gpus).at_once(cluster) for gpus in (0.1, 0.25, 0.3, 1, 2)]))
main()
"""


def test_shares_of_a_gpu(tmp_path: Path) -> None:
    """Ray counts GPUs without looking at them, so one that does not exist will do."""
    out = tmp_path / "runs"
    command = ["run", "--suite", str(write_suite(tmp_path)), "--out", str(out), "--gpus-per-trial", "2"]
    done = subprocess.run(
        [sys.executable, "-c", LOGICAL_GPU, *command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert json.loads(done.stdout.splitlines()[0]) == [8, 4, 3, 1, 0]
    assert done.returncode == 2, "two GPUs were asked for where there is one"
    assert done.stderr.startswith("error: a trial needs 1 CPU, 2 GPU but Ray has 8 CPU, 1 GPU")
    assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_a_doctor_finds_this_machine_sound(tmp_path: Path) -> None:
    outcome = run_bench("doctor", "--data-root", tmp_path, "--out", tmp_path / "runs")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    for finding in ("torch ", "torchvision ", "ray ", "mlflow ", "CPU", "GB free", "digits", "Ray starts"):
        assert any(finding in line for line in lines), finding
    assert str(tmp_path) in outcome.out
    assert not (tmp_path / "runs").exists()


def test_a_doctor_finds_what_is_missing(tmp_path: Path) -> None:
    outcome = run_bench("doctor", "--data-root", tmp_path / "nowhere", "--out", tmp_path)
    assert outcome.code == 1
    (bad,) = [line for line in outcome.out.splitlines() if line.startswith("bad")]
    assert str(tmp_path / "nowhere") in bad
