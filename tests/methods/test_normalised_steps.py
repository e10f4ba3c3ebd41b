"""FedNova, FedSAM and FedExP against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.base import Samples, Tree
from methods.core.optimisers import SGD, Adam
from methods.fedavg import FedAvg
from methods.fedexp import FedExP
from methods.fednova import FedNova, summed_weights
from methods.fedsam import FedSAM
from tests.kit.tiny import (
    CURVATURES,
    MINIMA,
    Quadratic,
    a_batch,
    batches_of,
    close,
    federation,
    gradient,
    mlp_task,
    nearby,
    quadratic_clients,
    quadratic_task,
    reply,
    samples,
    server_after,
    uneven_clients,
)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_weights_of_gradients_sum_as_in_a_simulation(momentum: float, steps: int) -> None:
    """A constant gradient of 1 and a rate of 1: the distance travelled is ‖a‖₁."""
    position, velocity = 0.0, 0.0
    for _ in range(steps):
        velocity = momentum * velocity + 1.0
        position += velocity
    found = summed_weights(SGD(lr=1.0, momentum=momentum), torch.tensor(steps))
    assert float(found) == pytest.approx(position, rel=1e-5)


class NovaOnQuadratics(FedNova, Quadratic):
    label = "FedNova on quadratics"


class SamOnQuadratics(FedSAM, Quadratic):
    label = "FedSAM on quadratics"


def unequal_clients() -> list[Samples]:
    """Twenty samples at one point, two at another: ten steps against one."""
    points = torch.tensor([[1.0, 1.0, 1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 1.0, -3.0, 1.0, 0.0]])
    return [Samples(points[k].repeat(n, 1), torch.zeros(n, dtype=torch.long)) for k, n in ((0, 20), (1, 2))]


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_fednova_finds_the_minimum_of_the_mean_with_unequal_steps(momentum: float) -> None:
    """With small rates; FedAvg with uniform weights ends near the client of many steps."""
    task = replace(quadratic_task(2), optimiser=SGD(lr=0.01, momentum=momentum))
    clients = unequal_clients()
    middle = torch.stack([each.x[0, 3:] for each in clients]).mean(dim=0)
    nova, avg = (
        server_after(150, kind(weighting="uniform"), task, clients, batch_size=2)["model"]["classifier.bias"]
        for kind in (NovaOnQuadratics, Quadratic)
    )
    assert float((nova - middle).norm()) < 0.2 < 1.0 < float((avg - middle).norm())


def test_fednova_with_equal_steps_is_fedavg() -> None:
    clients = [samples([0, 1, 2, 0], 1), samples([2, 1, 2, 1], 2)]
    task = mlp_task(2, SGD(lr=0.1, momentum=0.9))
    ends = [server_after(3, method, task, clients)["model"] for method in (FedNova(), FedAvg())]
    assert close(*ends, tolerance=1e-6)


@pytest.mark.parametrize("optimiser", [Adam(lr=0.01), SGD(lr=0.1, groups=[{"match": "bias", "lr": 1.0}])])
def test_fednova_refuses_optimisers_without_such_a_sum(optimiser: SGD | Adam) -> None:
    with pytest.raises(ValueError, match=r"^needs SGD with one learning rate"):
        FedNova().check(mlp_task(optimiser=optimiser))


def test_fedsam_takes_the_gradient_uphill() -> None:
    task, batch = mlp_task(), a_batch()
    y = nearby(task.initial, 1)
    plain = FedAvg().objective(task, {}, {"model": y})
    g = gradient(plain, y, batch)
    length = np.sqrt(sum(float(leaf.double().square().sum()) for leaf in g.values()))
    expected = gradient(plain, y + float(0.2 / length) * g, batch)
    found = gradient(FedSAM(rho=0.2).objective(task, {}, {"model": y}), y, batch)
    assert close(found, expected, tolerance=1e-6)
    assert not close(found, g, tolerance=1e-3)


def test_fedsam_on_a_quadratic_is_its_closed_form() -> None:
    """On ½Σa(y − b)² the gradient at y + ρg/‖g‖ is g + ρ·a∘g/‖g‖."""
    a, b = CURVATURES[0], MINIMA[0]
    task, batch = quadratic_task(1), next(iter(batches_of(quadratic_clients()[0])))
    y = Tree({**task.initial, "classifier.bias": torch.tensor([0.5, 1.0, -1.0])})
    objective = SamOnQuadratics(rho=0.3).objective(task, {}, {"model": y})
    g = a * (y["classifier.bias"] - b)
    found = gradient(objective, y, batch)["classifier.bias"]
    np.testing.assert_allclose(found, g + 0.3 * a * g / g.norm(), atol=1e-5)


def updates(*points: float) -> list[Tree]:
    task = quadratic_task(len(points))
    return [
        Tree({**task.initial, "classifier.bias": torch.tensor([p, -p, 0.0]), **_zero_weight()})
        for p in points
    ]


def _zero_weight() -> dict[str, torch.Tensor]:
    return {"classifier.weight": torch.zeros(3, 1)}


@pytest.mark.parametrize(
    ("points", "step"), [((1.0, 1.0), 1.0), ((3.0, -1.0), (10 / (2 * (2 + 1e-3)))), ((3.0, -2.0), 13 / 1.002)]
)
def test_fedexp_steps_further_when_updates_disagree(points: tuple[float, ...], step: float) -> None:
    """From 0: ‖Δ_k‖² = 2p², Δ̄ = mean p."""
    task = quadratic_task(2)
    zero = Tree({**task.initial, "classifier.bias": torch.zeros(3), **_zero_weight()})
    server = {"model": zero, "previous": zero, "step_size": torch.tensor(1.0)}
    replies = [reply(k, 1, model=model) for k, model in enumerate(updates(*points))]
    after = FedExP().aggregate(task, server, replies)
    assert float(after["step_size"]) == pytest.approx(step, rel=1e-4)
    expected = step * float(np.mean(points))
    np.testing.assert_allclose(after["model"]["classifier.bias"], [expected, -expected, 0], rtol=1e-4)


def test_fedexp_predicts_with_the_mean_of_the_last_two() -> None:
    task, clients = mlp_task(), uneven_clients()
    run, _ = federation(FedExP(), task, clients)
    before = run.server["model"]
    run.advance()
    assert run.advance()["metrics"]["step_size"] >= 1
    last, previous = run.server["model"], run.server["previous"]
    assert not close(last, previous, tolerance=1e-3) and not close(previous, before, tolerance=1e-3)
    x = clients[0].x
    expected = task.logits((last + previous) / 2, x)
    assert torch.equal(FedExP().predict(task, run.server, None, x), expected)
    latest = FedExP(average_last_two=False).predict(task, run.server, None, x)
    assert torch.equal(latest, task.logits(last, x))
