"""A suite with a user's own pictures and model: from the file to a trained model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.engine.assembly import assemble
from bench.engine.clients.loop import LoopHost
from bench.engine.federation import Federation
from bench.suite.loading import load_suite
from bench.suite.planning import PlannedCell, plan_cells
from tests.kit.cli import call_bench, write_suite
from tests.kit.data import domain_pictures, picture, write_folder

MODEL = """
from torch import nn

def model(input_shape, classes):
    features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
    return nn.Sequential(features, nn.Flatten(), nn.Linear(16, classes))
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures below the data root, and the model in the current directory."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_DATA_ROOT", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "root" / "pets", domain_pictures(("photo", "sketch"), ("cat", "dog"), each=10))
    (tmp_path / "net.py").write_text(MODEL)
    return write_suite(
        tmp_path,
        dataset={"name": "folder", "path": "pets", "size": 8},
        partition={"name": "by_domain", "clients": 2},
        model={"name": "file", "path": "net.py"},
        methods=["fedavg"],
        seeds=1,
    )


def only_cell(suite: Path) -> PlannedCell:
    (cell,) = plan_cells(load_suite(str(suite)))
    return cell


def test_a_cell_is_trained_in_another_directory_than_it_was_planned_in(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = only_cell(suite).config
    assemble(config)  # as the driver does before it starts workers
    monkeypatch.delenv("BENCH_DATA_ROOT")
    (tmp_path / "trial").mkdir()
    monkeypatch.chdir(tmp_path / "trial")
    problem = assemble(config).problem
    assert problem.task.has_batch_norm
    assert {name: len(samples.y) for name, samples in problem.test.items()} == {"photo": 6, "sketch": 6}
    federation = Federation(problem, LoopHost(problem), 1.0)
    federation.advance()
    assert not federation.server["model"]["classifier.weight"].equal(
        problem.task.initial["classifier.weight"]
    )


def test_edited_data_and_models_are_other_cells(suite: Path, tmp_path: Path) -> None:
    first = only_cell(suite).cell_id
    assert only_cell(suite).cell_id == first
    (tmp_path / "net.py").write_text(MODEL + "# edited\n")
    second = only_cell(suite).cell_id
    (tmp_path / "root" / "pets" / "photo" / "cat" / "000.png").write_bytes(picture(99))
    assert len({first, second, only_cell(suite).cell_id}) == 3


def test_the_data_root_may_be_an_option(suite: Path, tmp_path: Path) -> None:
    outcome = call_bench("run", "--suite", suite, "--dry-run", "--data-root", tmp_path / "root")
    assert outcome.code == 0, outcome.err
    assert "cells: 1" in outcome.out
    outcome = call_bench("run", "--suite", suite, "--dry-run")
    assert outcome.code == 2
    assert "no 'pets' in the current directory" in outcome.err
