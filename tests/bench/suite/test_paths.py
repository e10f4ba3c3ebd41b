"""Paths in a suite file start from its folder, wherever a command is started."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import write_suite

METHOD = '"""Mine."""\n\nfrom methods.fedavg import FedAvg\n\n\nclass Mine(FedAvg):\n    label = "Mine"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files for a suite, while the current directory is another one."""
    place, elsewhere = tmp_path / "suites", tmp_path / "elsewhere"
    for each in (place, elsewhere):
        each.mkdir()
    labels = np.arange(30) % 3
    points = np.eye(3, 4, dtype="float32")[labels]
    np.savez(place / "points.npz", x_train=points, x_test=points, y_train=labels, y_test=labels)
    torch.save({}, place / "weights.pt")
    (place / "mine.py").write_text(METHOD)
    monkeypatch.chdir(elsewhere)
    return place


def test_files_beside_the_suite_are_found_from_another_directory(folder: Path) -> None:
    suite = load_suite(
        str(
            write_suite(
                folder,
                dataset={"name": "arrays", "path": "points.npz"},
                encoder="timm:resnet10t@weights.pt",
                model={"name": "timm", "source": "resnet10t", "weights": "weights.pt"},
                methods=["mine.py", "ggeur+mine.py", {"name": "fedavg", "model": {"name": "mlp"}}],
                variants=[
                    {"name": "a", "set": {"model.weights": "./weights.pt", "training.epochs": 2}},
                    {"name": "b", "set": {"encoder": "timm:resnet10t@weights.pt"}},
                ],
            )
        )
    )
    weights, method = str(folder / "weights.pt"), str(folder / "mine.py")
    assert suite.dataset["path"] == str(folder / "points.npz")
    assert suite.encoder is not None and suite.encoder.name == f"timm:resnet10t@{weights}"
    assert suite.model == {"name": "timm", "source": "resnet10t", "weights": weights}
    assert [entry.name for entry in suite.methods] == [method, f"ggeur+{method}", "fedavg"]
    assert suite.variants[0].set == {"model.weights": weights, "training.epochs": 2}
    assert suite.variants[1].set == {"encoder": f"timm:resnet10t@{weights}"}


def test_what_the_current_directory_has_keeps_the_ids_of_its_cells(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    suite = load_suite(str(write_suite(folder, dataset={"name": "arrays", "path": "points.npz"})))
    assert suite.dataset["path"] == "points.npz"


def test_workers_get_the_full_path_of_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their current directory is another one; own data and models are read from the cache instead."""
    monkeypatch.chdir(folder)
    for model in (
        {"name": "timm", "source": "resnet10t", "weights": "weights.pt"},
        {"name": "vit_lora", "weights": "weights.pt"},
    ):
        file = write_suite(folder, model=model, encoder="timm:resnet10t@weights.pt")
        config = plan_cells(load_suite(str(file)))[0].config
        assert config.model.options["weights"] == str(folder / "weights.pt")
        assert config.encoder is not None
        assert config.encoder.name == f"timm:resnet10t@{folder / 'weights.pt'}"


@pytest.mark.parametrize("text", ["hub", "random", "x\0y", "z" * 5000, "../nothing", ""])
def test_what_is_no_path_stays_as_it_is(folder: Path, text: str) -> None:
    suite = load_suite(str(write_suite(folder, model={"name": "timm", "weights": text})))
    assert suite.model["weights"] == text
