"""FedTGP and its form with averaged weights."""

from typing import TypeAlias

import pytest
import torch

from methods.fedtgp import FedTGP
from methods.fedtgp_avg import FedTGPAvg
from methods.shared.trained_prototypes import largest_gap, margin_loss
from tests.kit.tiny import mlp_task, server_after, uneven_clients

Kind: TypeAlias = type[FedTGP] | type[FedTGPAvg]
both = pytest.mark.parametrize("kind", [FedTGP, FedTGPAvg])
P = torch.tensor([[0.0, 0.0], [2.0, 0.0], [3.0, 4.0], [9.0, 0.0]])
Y = torch.tensor([0, 0, 1, 3])


def test_the_margin_is_the_largest_of_the_classes_smallest_gaps() -> None:
    """Class means (1, 0), (3, 4), (9, 0); the nearest others are √20, √20 and √52 away."""
    assert largest_gap(P, Y, classes=4) == pytest.approx(52**0.5)
    assert largest_gap(P[:2], Y[:2], classes=4) == float("inf")


def test_a_prototype_exactly_at_a_class_mean_has_a_finite_slope() -> None:
    prototypes = P.clone().requires_grad_()
    (slope,) = torch.autograd.grad(margin_loss(prototypes, P, Y, 1.0), prototypes)
    assert bool(torch.isfinite(slope).all())


@both
def test_what_makes_the_prototypes_does_not_travel(kind: Kind) -> None:
    task = mlp_task()
    method = kind(server_epochs=1)
    server = server_after(1, method, task, uneven_clients())
    assert "maker" in server
    assert set(method.down(task, server, 0)) <= {"model", "prototypes", "known"}
    assert "prototypes" in method.down(task, server, 0)
