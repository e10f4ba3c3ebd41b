"""FedMix against closed forms, and what its clients upload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.models.architectures.cnn import CNN
from bench.models.base import seeded_model
from methods.base import Batch, Samples, State, Task, Tree
from methods.fedmix import FedMix
from methods.modules.pixels import Pixels
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    WIDTH,
    a_batch,
    close,
    federation,
    head_task,
    log_softmax,
    nearby,
    task_of,
    uneven_clients,
)

in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def one_mean(seed: int = 5) -> State:
    """A client that knows a single averaged sample."""
    x = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(seed))
    return {"means": {"x": x, "y": torch.tensor([[0.2, 0.5, 0.3]])}}


def fedmix_loss(task: Task, y: Tree, batch: Batch, **options: Any) -> float:
    return float(FedMix(**options).objective(task, one_mean(), {})(y, batch).detach())


@pytest.mark.parametrize("lam", [0.05, 0.4])
def test_fedmix_on_a_linear_model_is_the_closed_form(lam: float) -> None:
    """∇_u CE(Wu + b, y) = Wᵀ(p − e_y); every sample's inner product with x̄ counts once."""
    task, batch = head_task(), a_batch()
    params = nearby(task.initial, 1)
    W, b = (params[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    means = one_mean()["means"]
    x_mean, y_mean = means["x"][0].double().numpy(), means["y"][0].double().numpy()
    losses = []
    for x, y in zip(batch.x.double().numpy(), batch.y.tolist(), strict=True):
        u = (1 - lam) * x
        log_p = log_softmax(W @ u + b)
        slope = W.T @ (np.exp(log_p) - np.eye(CLASSES)[y])
        losses.append((1 - lam) * -log_p[y] + lam * -(log_p @ y_mean) + lam * (1 - lam) * (slope @ x_mean))
    assert fedmix_loss(task, params, batch, lam=lam) == pytest.approx(np.mean(losses), rel=1e-5)
    mixed = log_softmax((1 - lam) * batch.x.double().numpy() @ W.T + lam * x_mean @ W.T + b)
    targets = (1 - lam) * np.eye(CLASSES)[batch.y] + lam * y_mean
    naive = -(mixed * targets).sum(axis=1).mean()
    assert fedmix_loss(task, params, batch, lam=lam, variant="naive") == pytest.approx(naive, rel=1e-5)


def test_the_variants_of_fedmix_differ_by_the_square_of_lambda() -> None:
    task = task_of(head_task().model.double())
    means = {key: value.double() for key, value in one_mean()["means"].items()}
    data = a_batch()
    batch = data._replace(x=data.x.double())
    params = nearby(task.initial, 1)

    def gap(lam: float) -> float:
        values = [
            FedMix(lam=lam, variant=variant).objective(task, {"means": means}, {})(params, batch)
            for variant in ("taylor", "naive")
        ]
        return abs(float((values[0] - values[1]).detach()))

    assert gap(0.02) / gap(0.01) == pytest.approx(4, rel=0.05)
    assert gap(0.01) / gap(0.005) == pytest.approx(4, rel=0.03)


@in_one_process
def test_everybody_gets_means_of_whole_groups_and_nobody_keeps_another_copy(kind: type[Host]) -> None:
    clients = uneven_clients()  # 7, 12 and 4 samples
    run_, host = federation(FedMix(group_size=5), head_task(), clients, kind=kind)
    record = run_.prelude()
    assert record["metrics"] == {"averaged_samples": 3}
    means = [host.state(client)["means"] for client in range(3)]
    assert means[0]["x"].shape == (3, WIDTH)
    assert means[0]["x"] is means[1]["x"] is means[2]["x"]
    np.testing.assert_allclose(means[0]["y"].sum(dim=1), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(means[0]["y"] * 5, (means[0]["y"] * 5).round(), atol=1e-5)
    assert "means" not in run_.server
    assert record["bytes_down"] == 3 * record["bytes_up"]


def test_groups_of_fedmix_do_not_overlap() -> None:
    """Groups of one are the samples themselves, in another order; even groups have the mean of all."""
    data = uneven_clients()[1]
    task = head_task(1)
    run_, host = federation(FedMix(group_size=1), task, [data])
    run_.prelude()
    found = host.state(0)["means"]["x"]
    assert not torch.equal(found, data.x)  # at random
    assert torch.equal(found.sort(dim=0).values, data.x.sort(dim=0).values)
    run_, host = federation(FedMix(group_size=6), task, [data])
    run_.prelude()
    np.testing.assert_allclose(host.state(0)["means"]["x"].mean(dim=0), data.x.mean(dim=0), atol=1e-6)


def test_without_a_whole_group_there_is_nothing_to_mix_with() -> None:
    run_, _ = federation(FedMix(group_size=50), head_task(), uneven_clients())
    assert run_.prelude()["metrics"] == {"averaged_samples": 0}
    run_.advance()
    assert bool(torch.isfinite(run_.server["model"]["classifier.weight"]).all())


def test_fedmix_mixes_pictures_as_models_see_them() -> None:
    """Bytes and the floats that the first layer makes of them give the same averages and the same model."""
    spec = CNN(channels=(2, 3), features=HIDDEN, embedding=4, grid=2)
    task = task_of(seeded_model(spec, (3, 8, 8), CLASSES, seed=0), clients=1)
    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (10, 3, 8, 8), generator=draw, dtype=torch.uint8)
    y = torch.arange(10) % CLASSES
    ends = []
    for x in (pictures, Pixels()(pictures)):
        run_, host = federation(FedMix(lam=0.2), task, [Samples(x, y)])
        run_.prelude()
        run_.advance()
        assert float(host.state(0)["means"]["x"].abs().max()) < 3
        ends.append(run_.server["model"])
    assert close(*ends, tolerance=1e-6)
