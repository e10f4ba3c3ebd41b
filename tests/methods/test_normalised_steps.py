"""FedNova, FedSAM and FedExP against closed forms and in limit cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.base import Samples, Tree
from methods.core.optimisers import SGD, Adam
from methods.fedavg import FedAvg
from methods.fedexp import FedExP
from methods.fednova import FedNova
from methods.fedsam import FedSAM
from tests.kit.tiny import (
    CURVATURES,
    MINIMA,
    Quadratic,
    batches_of,
    close,
    federation,
    gradient,
    mlp_task,
    quadratic_clients,
    quadratic_task,
    reply,
    samples,
    server_after,
    uneven_clients,
)


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


def test_fedexps_step_is_recorded() -> None:
    run, _ = federation(FedExP(), mlp_task(), uneven_clients())
    assert run.advance()["metrics"] == {"step_size": pytest.approx(float(run.server["step_size"]))}
