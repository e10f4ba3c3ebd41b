"""The picture of test samples around the anchors of their classes, from a cell's last round to the figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.engine.projection import in_two_dimensions
from bench.records.cell_folder import CellFolder
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from tests.kit.cli import write_suite


def finished_cells(folder: Path, *methods: str) -> dict[tuple[str, int], Path]:
    suite = write_suite(folder, methods=list(methods), training=SHORT)
    folders = {}
    for cell in plan_cells(load_suite(str(suite))):
        run = CellRun(CellFolder(folder / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()
        run.close()
        folders[cell.config.method.name, cell.seed] = folder / cell.directory
    return folders


SHORT = {"rounds": 1, "epochs": 1, "batch_size": 10, "optimiser": {"name": "sgd", "lr": 0.05}}


def test_methods_with_anchors_leave_a_projection_at_the_first_seed(tmp_path: Path) -> None:
    cells = finished_cells(tmp_path, "fedavg", "fedlsa", "fedproto_avg")
    have_one = {key for key, folder in cells.items() if (folder / "projection.npz").exists()}
    assert have_one == {("fedlsa", 0), ("fedproto_avg", 0)}
    with np.load(cells["fedlsa", 0] / "projection.npz", allow_pickle=False) as arrays:
        points, labels, anchors = arrays["points"], arrays["labels"], arrays["anchors"]
    assert points.shape == (400, 2) and anchors.shape == (10, 2)
    assert np.isfinite(points).all() and np.isfinite(anchors).all()
    assert set(labels.tolist()) == set(range(10))


def test_what_is_together_in_many_dimensions_is_together_in_two() -> None:
    draw = np.random.default_rng(0)
    centres = np.eye(5, 16) * 10
    vectors = np.concatenate([centre + draw.normal(size=(20, 16)) for centre in centres])
    flat = in_two_dimensions(np.concatenate([vectors, centres]).astype(np.float32))
    points, anchors = flat[:100], flat[100:]
    nearest = ((points[:, None] - anchors) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == np.repeat(np.arange(5), 20)).mean() == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_model_that_blew_up_has_no_picture(tmp_path: Path, value: float) -> None:
    from bench.engine.problem import Problem
    from bench.engine.projection import write_projection
    from methods.fedlsa import FedLSA
    from tests.kit.tiny import mlp_task, uneven_clients

    task, method = mlp_task(), FedLSA(server_steps=0)
    clients = dict(enumerate(uneven_clients()))
    problem = Problem(task, method, 1, 4, clients, {}, {"all": clients[0]}, {})
    server = method.server(task)
    write_projection(tmp_path / "whole.npz", problem, server)
    server["model"] = server["model"] * value
    write_projection(tmp_path / "broken.npz", problem, server)
    assert [file.name for file in tmp_path.iterdir()] == ["whole.npz"]


def test_prototypes_that_never_came_about_are_not_drawn() -> None:
    from methods.fedproto_avg import FedProtoAvg
    from tests.kit.tiny import mlp_task, uneven_clients

    task, method = mlp_task(), FedProtoAvg()
    assert method.anchored(task, method.server(task), uneven_clients()[0].x) is None
