"""SCAFFOLD and FedDyn, which correct the clients' drift by what they remember."""

from typing import ClassVar

import pytest
import torch
from pydantic import ValidationError

from methods.base import FedAlgorithm, Tree
from methods.core.optimisers import SGD, Adam, Group, Optimiser
from methods.fedavg import FedAvg
from methods.feddyn import FedDyn
from methods.scaffold import Scaffold
from tests.kit.tiny import (
    MINIMA,
    MINIMUM_OF_MEAN,
    Quadratic,
    batch_norm_task,
    close,
    mlp_task,
    nearby,
    quadratic_clients,
    quadratic_task,
    reply,
    samples,
    server_after,
    uneven_clients,
)

FULL = 100
"""A batch size that no client reaches."""


class _ScaffoldOnQuadratics(Scaffold, Quadratic):
    label: ClassVar[str] = "SCAFFOLD on quadratics"


class _FedDynOnQuadratics(FedDyn, Quadratic):
    label: ClassVar[str] = "FedDyn on quadratics"


def bias_after(rounds: int, method: FedAlgorithm, epochs: int, lr: float = 0.2) -> torch.Tensor:
    task = quadratic_task(lr=lr)
    model: Tree = server_after(rounds, method, task, quadratic_clients(), epochs=epochs)["model"]
    return model["classifier.bias"]


# Where they come to rest


def test_fedavg_rests_at_the_mean_of_the_minima() -> None:
    """The premise of the next tests: with many local steps it misses the minimum of the mean loss."""
    bias = bias_after(3, Quadratic(), epochs=100)
    assert torch.allclose(bias, MINIMA.mean(dim=0), atol=1e-4)
    assert (bias - MINIMUM_OF_MEAN).abs().max() > 0.1


def test_feddyn_rests_at_the_minimum_of_the_mean_loss() -> None:
    bias = bias_after(25, _FedDynOnQuadratics(alpha=1.0), epochs=15)
    assert torch.allclose(bias, MINIMUM_OF_MEAN, atol=1e-4)


def test_scaffold_rests_at_the_minimum_of_the_mean_loss() -> None:
    bias = bias_after(60, _ScaffoldOnQuadratics(), epochs=5, lr=0.1)
    assert torch.allclose(bias, MINIMUM_OF_MEAN, atol=1e-4)


# SCAFFOLD


def test_scaffold_with_one_client_is_plain_sgd() -> None:
    clients = uneven_clients()[:1]
    ends = [
        server_after(4, method, mlp_task(clients=1), clients, epochs=2)["model"]
        for method in (Scaffold(), FedAvg())
    ]
    assert close(*ends, tolerance=1e-5)


def test_scaffold_with_identical_clients_and_batches_is_fedavg() -> None:
    clients = [samples([0, 1, 2, 0, 1], seed=1)] * 3
    ends = [
        server_after(4, method, mlp_task(), clients, epochs=3, batch_size=FULL)["model"]
        for method in (Scaffold(), FedAvg())
    ]
    assert close(*ends, tolerance=1e-5)


def test_option_two_is_no_part_of_a_cells_name() -> None:
    assert "control_option" not in Scaffold().model_dump(mode="json")
    assert Scaffold(control_option="I").model_dump(mode="json")["control_option"] == "I"


@pytest.mark.parametrize(
    "optimiser",
    [
        SGD(lr=0.1, momentum=0.9),
        SGD(lr=0.1, weight_decay=1e-5),
        SGD(lr=0.1, clip_norm=1.0),
        SGD(lr=0.1, groups=(Group(match="encoder", lr=0.01),)),
        Adam(lr=0.1),
    ],
    ids=["momentum", "weight decay", "clipping", "groups", "adam"],
)
def test_scaffold_refuses_all_but_plain_sgd(optimiser: Optimiser) -> None:
    with pytest.raises(ValueError, match=r"^needs plain SGD.*set its optimiser"):
        Scaffold().check(mlp_task(optimiser=optimiser))


def test_scaffold_accepts_plain_sgd_of_any_rate() -> None:
    Scaffold().check(mlp_task(optimiser=SGD(lr=0.37)))


# FedDyn


@pytest.mark.parametrize("alpha", [0, -0.1])
def test_feddyn_has_no_neutral_alpha(alpha: float) -> None:
    with pytest.raises(ValidationError):
        FedDyn(alpha=alpha)


# Both


@pytest.mark.parametrize("method", [Scaffold(server_lr=0.5), FedDyn()], ids=["scaffold", "feddyn"])
def test_buffers_are_averaged_alike(method: FedAlgorithm) -> None:
    """Uniformly, without a correction, and counters are never averaged."""
    task = batch_norm_task()
    models = [nearby(task.initial, k) for k in range(2)]
    zeros = task.initial.only(task.trainable).zeros()
    replies = [reply(k, 10 * k + 1, model=model, control_change=zeros) for k, model in enumerate(models)]
    after = method.aggregate(task, method.server(task), replies)["model"]
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        assert torch.allclose(after[buffer], (models[0][buffer] + models[1][buffer]) / 2)
    assert torch.equal(after["encoder.1.num_batches_tracked"], models[0]["encoder.1.num_batches_tracked"])
    assert list(after) == list(task.initial)


@pytest.mark.parametrize("kind", [Scaffold, FedDyn])
def test_averages_by_samples_are_refused(kind: type[FedAlgorithm]) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate({"weighting": "samples"})


def mean(trees: list[Tree]) -> Tree:
    return sum(trees[1:], start=trees[0]) / len(trees)
