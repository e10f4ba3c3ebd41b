"""GGEUR as its public code has it, and the options beside the paper's settings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.engine.cell import CellRun
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.suite.loading import load_suite
from bench.suite.planning import plan_cells
from methods.base import Tree
from methods.core.optimisers import SGD, Adam
from methods.fedavg import FedAvg
from methods.shared.geometry import geometry_similarity, moments, principal_axes
from methods.wrappers.ggeur import GGEUR
from methods.wrappers.ggeur.as_published import largest_holders
from tests.kit.cli import TINY, write_suite
from tests.kit.tiny import CLASSES, close, federation, mlp_task, samples
from tests.methods.test_ggeur import after_prelude, after_statistics, head_task, lopsided_clients

PUBLISHED = GGEUR(inner=FedAvg(), samples_per_class=1, as_published=True)


def test_every_client_begins_with_weights_of_its_own() -> None:
    task = head_task(3)
    for kind in (LoopHost, StackedHost):
        _, host, _ = after_prelude(PUBLISHED, task, lopsided_clients(), kind)
        models = [host.state(k)["inner"]["model"] for k in range(3)]
        assert not close(models[0], models[1], tolerance=1e-2)
        assert not close(models[1], models[2], tolerance=1e-2)
        bound = 1 / 5**0.5  # five inputs
        for model in models:
            assert float(model["classifier.weight"].abs().max()) <= bound
            assert float(model["classifier.weight"].abs().max()) > bound / 2


def test_the_model_is_never_sent_back_and_the_loss_is_flattened() -> None:
    clients, task = lopsided_clients(), head_task(3)
    run, host = federation(PUBLISHED, task, clients, batch_size=32)
    run.prelude()
    models = [host.state(k)["inner"]["model"] for k in range(3)]
    for _ in range(2):
        assert run.advance()["bytes_down"] == 0
        for k, client in enumerate(clients):
            leaves = {name: leaf.detach().requires_grad_() for name, leaf in models[k].items()}
            scores = client.x @ leaves["classifier.weight"].T + leaves["classifier.bias"]
            doubled = scores.softmax(dim=1).log_softmax(dim=1)
            loss = -doubled[torch.arange(len(client.y)), client.y].mean()
            grads = torch.autograd.grad(loss, list(leaves.values()))
            models[k] = Tree({n: leaves[n].detach() - 0.1 * g for n, g in zip(leaves, grads, strict=True)})
    for k in range(3):
        assert close(host.state(k)["inner"]["model"], models[k])
    mean = (models[0] + models[1] + models[2]) / 3
    assert close(run.server["inner"]["model"], mean)


def test_adam_is_the_clients_optimiser_unless_another_is_set() -> None:
    assert PUBLISHED.client_optimiser == Adam(lr=1e-3)
    assert GGEUR(inner=FedAvg(), as_published=True, optimiser=SGD(lr=0.1)).client_optimiser == SGD(lr=0.1)
    assert GGEUR(inner=FedAvg()).client_optimiser is None


def test_the_largest_holders_worked_out_by_hand() -> None:
    """Class 0: 50 + 30 of 100 are 80 %. Class 1: one client has 90 %. Class 2: the first three of four."""
    counts = torch.tensor([[50, 0, 25], [30, 90, 25], [15, 5, 25], [5, 5, 20]])
    assert largest_holders(counts).int().tolist() == [[1, 0, 1], [1, 1, 1], [0, 0, 1], [0, 0, 1]]


def test_a_class_has_the_covariance_of_its_largest_holders() -> None:
    """Class 0 of 9 + 2 + 3 samples: the first and the third have 12 of 14."""
    clients = lopsided_clients()
    _, host, _ = after_prelude(PUBLISHED, head_task(3), clients)
    shared = host.state(0)["shared"]["axes"]
    values, vectors = shared["eigenvalues"][0].double(), shared["eigenvectors"][0].double()
    members = torch.cat([clients[k].x[clients[k].y == 0] for k in (0, 2)]).double().numpy()
    expected = np.cov(members.T, bias=True) + 1e-6 * np.eye(5)
    np.testing.assert_allclose(((vectors * values) @ vectors.T).numpy(), expected, atol=1e-5)


def test_no_class_is_withheld() -> None:
    _, _, record = after_prelude(PUBLISHED, head_task(3), lopsided_clients())
    assert record["metrics"]["withheld_classes"] == 0


def test_with_several_domains_all_clients_count() -> None:
    clients, task = lopsided_clients(), head_task(3, (0, 1, 2))
    method = GGEUR(inner=FedAvg(), as_published=True, step1_samples=1, step2_samples=1)
    assert "CountsUp" not in [type(each).__name__ for each in method.prelude(task)]
    assert after_statistics(method, task, clients)["moments"]["counts"].tolist() == [14, 15, 7]


def test_only_linear_layers_are_drawn() -> None:
    PUBLISHED.check(head_task(3))
    with pytest.raises(ValueError, match="linear layers"):
        task = mlp_task()
        PUBLISHED.check(replace(task, initial=task.initial | Tree({"classifier.weight": torch.ones(3)})))


@pytest.mark.parametrize("published", [True, False])
def test_all_rounds_are_evaluated(published: bool, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    arrays = {f"x_{part}": draw.normal(size=(40, 5)).astype(np.float32) for part in ("train", "test")}
    labels = {f"y_{part}": np.arange(40) % 3 for part in ("train", "test")}
    np.savez(tmp_path / "points.npz", allow_pickle=False, **arrays, **labels)
    suite = write_suite(
        tmp_path,
        dataset={"name": "arrays", "path": str(tmp_path / "points.npz")},
        partition={"name": "iid", "clients": 2},
        model={"name": "head"},
        training=TINY["training"] | {"rounds": 8},
        evaluation={"every": 7},
        methods=[{"name": "ggeur+fedavg", "set": {"samples_per_class": 1, "as_published": published}}],
        seeds=1,
    )
    run = CellRun(CellFolder(tmp_path / "cell"), plan_cells(load_suite(str(suite)))[0].config, Conditions())
    while not run.done:
        run.advance()
    lines = map(json.loads, (tmp_path / "cell" / "rounds.jsonl").read_text().splitlines())
    evaluated = [line["round"] for line in lines if "test" in line]
    assert evaluated == ([1, 2, 3, 4, 5, 6, 7, 8] if published else [4, 5, 6, 7, 8])


# Options


def test_samples_per_original() -> None:
    method = GGEUR(inner=FedAvg(), samples_per_original=3)
    _, host, _ = after_prelude(method, head_task(3), lopsided_clients())
    assert host.made(0, 1).y.bincount(minlength=CLASSES).tolist() == [36, 16, 24]
    assert host.made(2, 1).y.bincount(minlength=CLASSES).tolist() == [12, 12, 0]


def test_the_similarity_of_geometries_is_recorded_if_asked_for() -> None:
    clients = [samples([0] * 8 + [1] * 8, seed) for seed in (1, 2)]
    _, _, record = after_prelude(GGEUR(inner=FedAvg(), report_similarity=True), head_task(2), clients)
    x, y = (torch.cat([each[at] for each in clients]) for at in (0, 1))
    labels = torch.arange(2)
    whole = principal_axes(moments(x, y, labels).covariances)
    each = [geometry_similarity(principal_axes(moments(*k, labels).covariances), whole) for k in clients]
    assert record["metrics"]["geometry_similarity"] == pytest.approx(
        float(torch.stack(each).mean()), abs=1e-4
    )
    alike = [clients[0], clients[0]]
    _, _, record = after_prelude(GGEUR(inner=FedAvg(), report_similarity=True), head_task(2), alike)
    assert record["metrics"]["geometry_similarity"] == pytest.approx(1, abs=1e-4)


def test_options_at_their_defaults_are_no_part_of_a_cell() -> None:
    dumped = GGEUR(inner=FedAvg()).model_dump(mode="json")
    assert "report_similarity" not in dumped
    assert "samples_per_original" not in dumped
    assert GGEUR(inner=FedAvg(), samples_per_original=3).model_dump(mode="json")["samples_per_original"] == 3
