"""What a run checks before it starts, and a dry run alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.engine.devices import device_in_cluster, device_type, gpus_per_trial
from tests.kit.cli import Outcome, assert_one_sentence, call_bench, write_suite


@pytest.mark.parametrize(
    ("asked", "cards", "has_cuda", "expected"),
    [
        (None, 2, True, "cuda"),
        (0.25, 1, True, "cuda"),
        (0.0, 1, True, "cpu"),
        (None, 0, False, "cpu"),
        (None, 0.5, True, "cpu"),
        (1.0, 1, False, "cpu"),
    ],
)
def test_the_device_of_a_trial(asked: float | None, cards: float, has_cuda: bool, expected: str) -> None:
    assert device_type(gpus_per_trial(asked, cards), has_cuda, has_mps=False) == expected
    assert device_type(0.0, has_cuda, has_mps=True) == "mps"


def test_in_a_cluster_trials_with_a_share_of_gpus_are_put_where_gpus_are() -> None:
    assert device_in_cluster(0.5) == "cuda" != device_in_cluster(0.0)


class Dry:
    """Dry runs of the commands that have them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, command: str, suite: Path, *more: object) -> Outcome:
        return call_bench(command, "--suite", suite, "--out", self.folder / "runs", "--dry-run", *more)


@pytest.fixture
def dry(tmp_path: Path) -> Dry:
    return Dry(tmp_path)


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize("command", ["run", "study"])
def test_a_precision_is_asked_of_the_device_that_cells_will_have(
    tmp_path: Path, dry: Dry, monkeypatch: pytest.MonkeyPatch, command: str, precision: str
) -> None:
    suite = write_suite(tmp_path, training=_training(precision), methods=["fedavg"])
    assert_one_sentence(dry(command, suite), f"{precision} needs CUDA")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # there is none here, and none is used
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert dry(command, suite).code == 0
    assert_one_sentence(dry(command, suite, "--gpus-per-trial", "0"), f"{precision} needs CUDA")


def _training(precision: str) -> dict[str, object]:
    optimiser = {"name": "sgd", "lr": 0.05}
    return {"rounds": 1, "epochs": 1, "batch_size": 10, "optimiser": optimiser, "precision": precision}


@pytest.mark.parametrize("command", ["run", "study"])
def test_a_dry_run_extracts_no_features(
    tmp_path: Path, dry: Dry, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("BENCH_CACHE", str(cache))
    outcome = dry(command, write_suite(tmp_path, encoder="pixels", methods=["fedavg"]))
    assert outcome.code == 0, outcome
    assert "time: not estimated, since the features of pixels are not computed yet" in outcome.out
    assert not (cache / "embeddings").exists() and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("how", [["--dry-run"], []], ids=["dry run", "run"])
def test_a_model_that_takes_no_features_is_refused_before_they_are_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("BENCH_CACHE", str(cache))
    suite = write_suite(tmp_path, model={"name": "cnn"})
    outcome = call_bench("run", "--suite", suite, "--encoder", "pixels", "--out", tmp_path / "runs", *how)
    assert_one_sentence(outcome, "model 'cnn' takes pictures")
    assert not (cache / "embeddings").exists()
