"""A cell's final predictions: kept sample by sample, and in agreement with its accuracies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.predictions import Predictions, labels_digest, read_predictions
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import write_suite

SHORT = {"rounds": 2, "epochs": 1, "batch_size": 10, "optimiser": {"name": "sgd", "lr": 0.05}}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    """Finished cells of a method with a global model and of two without, by method and seed."""
    folder = tmp_path_factory.mktemp("cells")
    suite = write_suite(folder, methods=["fedavg", "fedproto", "local"], training=SHORT)
    found = {}
    for cell in plan_cells(load_suite(str(suite))):
        run = CellRun(CellFolder(folder / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()
        run.close()
        found[cell.config.method.name, cell.seed] = folder / cell.directory
    return found


def test_the_mean_correctness_is_the_final_accuracy_of_every_method(
    cells: dict[tuple[str, int], Path],
) -> None:
    for folder in cells.values():
        kept = read_predictions(folder / "predictions.npz")
        final = json.loads((folder / "result.json").read_text())["final"]["test"]
        assert list(kept.right) == list(final)
        for domain, accuracy in final.items():
            assert kept.correctness(domain).mean() == pytest.approx(accuracy, abs=1e-6)


def test_a_global_model_leaves_its_classes_and_clients_models_only_how_many_are_right(
    cells: dict[tuple[str, int], Path],
) -> None:
    of_global = read_predictions(cells["fedavg", 0] / "predictions.npz")
    assert of_global.models == 1 and list(of_global.predicted) == list(of_global.right)
    assert all(classes.dtype == np.uint8 and classes.max() < 10 for classes in of_global.predicted.values())
    of_clients = read_predictions(cells["local", 0] / "predictions.npz")
    assert of_clients.models > 1 and not of_clients.predicted
    assert all(counts.max() <= of_clients.models for counts in of_clients.right.values())


def test_cells_on_the_same_test_sets_have_the_same_digests(cells: dict[tuple[str, int], Path]) -> None:
    digests = [dict(read_predictions(folder / "predictions.npz").digests) for folder in cells.values()]
    assert all(each == digests[0] for each in digests)
    assert len(set(digests[0].values())) > 1


def test_labels_in_another_order_have_another_digest() -> None:
    assert labels_digest(np.array([0, 1, 2])) == labels_digest(np.array([0, 1, 2], dtype=np.uint8))
    assert labels_digest(np.array([0, 1, 2])) != labels_digest(np.array([0, 2, 1]))


def test_what_is_written_is_read_again_in_the_smallest_type(tmp_path: Path) -> None:
    file = tmp_path / "predictions.npz"
    right = {"a/b": np.array([True, False]), "ü": np.array([True])}
    predicted = {"a/b": np.array([3, 300]), "ü": np.array([7])}
    Predictions({"a/b": "x", "ü": "y"}, right, 1, predicted).write(file)
    again = read_predictions(file)
    assert again.digests == {"a/b": "x", "ü": "y"} and again.models == 1
    assert again.correctness("a/b").tolist() == [1.0, 0.0]
    assert again.predicted["a/b"].tolist() == [3, 300] and again.predicted["a/b"].dtype == np.uint16
    assert again.predicted["ü"].dtype == again.right["ü"].dtype == np.uint8


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "predictions.npz"
    file.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(UserError, match=r"predictions\.npz cannot be read"):
        read_predictions(file)
