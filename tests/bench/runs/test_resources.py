"""What a trial may use: shares of CPUs and GPUs, and a machine that does not have them."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.cli import Outcome, assert_one_sentence

pytestmark = pytest.mark.xdist_group("clusters")


@pytest.fixture(scope="module")
def folder(gpu_session: tuple[Path, dict[str, Any]]) -> Path:
    return gpu_session[0]


@pytest.fixture(scope="module")
def session(gpu_session: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return gpu_session[1]


def test_trials_share_a_gpu(session: dict[str, Any]) -> None:
    """Eight CPUs and one GPU; a trial has one CPU."""
    assert session["fits"] == {"0.1": 8, "0.25": 4, "0.3": 3, "1": 1, "2": 0}


def test_a_trial_that_fits_nowhere_is_refused_at_once(session: dict[str, Any], folder: Path) -> None:
    expected = "a trial needs 1 CPU, 2 GPU but Ray has 8 CPU, 1 GPU"
    assert_one_sentence(Outcome(*session["greedy run"]), expected, "--gpus-per-trial")
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
