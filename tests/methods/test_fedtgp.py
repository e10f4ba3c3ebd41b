"""FedTGP and its form with averaged weights."""

from typing import TypeAlias

import numpy as np
import pytest
import torch
from torch import nn

from methods.base import Batch
from methods.fedavg import FedAvg
from methods.fedtgp import FedTGP
from methods.fedtgp_avg import FedTGPAvg
from methods.shared.trained_prototypes import largest_gap, margin_loss, prototypes_of
from tests.kit.tiny import HIDDEN, a_batch, equal, mlp_task, nearby, reply, server_after, uneven_clients

Kind: TypeAlias = type[FedTGP] | type[FedTGPAvg]
both = pytest.mark.parametrize("kind", [FedTGP, FedTGPAvg])
P = torch.tensor([[0.0, 0.0], [2.0, 0.0], [3.0, 4.0], [9.0, 0.0]])
Y = torch.tensor([0, 0, 1, 3])


def test_the_margin_is_the_largest_of_the_classes_smallest_gaps() -> None:
    """Class means (1, 0), (3, 4), (9, 0); the nearest others are √20, √20 and √52 away."""
    assert largest_gap(P, Y, classes=4) == pytest.approx(52**0.5)
    assert largest_gap(P[:2], Y[:2], classes=4) == float("inf")


def test_the_servers_loss_is_that_of_numpy() -> None:
    prototypes = torch.tensor([[0.0, 1.0], [3.0, 3.0], [5.0, 5.0], [8.0, 0.0]])
    apart = np.linalg.norm(P.numpy()[:, None] - prototypes.numpy(), axis=2) + 0.7 * np.eye(4)[Y.numpy()]
    shares = np.exp(-apart) / np.exp(-apart).sum(axis=1, keepdims=True)
    expected = -np.log(shares[np.arange(4), Y.numpy()]).mean()
    assert float(margin_loss(prototypes, P, Y, 0.7)) == pytest.approx(expected, rel=1e-5)


def test_a_prototype_exactly_at_a_class_mean_has_a_finite_slope() -> None:
    prototypes = P.clone().requires_grad_()
    (slope,) = torch.autograd.grad(margin_loss(prototypes, P, Y, 1.0), prototypes)
    assert bool(torch.isfinite(slope).all())


@both
def test_the_server_trains_as_an_ordinary_network_would(kind: Kind) -> None:
    """Full passes of plain SGD by torch.optim on the same embedding and layers."""
    task = mlp_task()
    method = kind(server_epochs=5, server_batch=100, server_lr=0.1)
    server = method.server(task)
    maker = server["maker"]
    draw = torch.Generator().manual_seed(1)
    means = torch.randn(2, 3, HIDDEN, generator=draw)
    counts = torch.tensor([[1.0, 2.0, 0.0], [3.0, 1.0, 0.0]])
    replies = [reply(k, 1, model=task.initial, prototypes=means[k], counts=counts[k]) for k in range(2)]

    embedding = nn.Parameter(maker["R"].clone())
    first, second = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
    for layer, number in ((first, 1), (second, 2)):
        layer.weight.data.copy_(maker[f"W{number}"])
        layer.bias.data.copy_(maker[f"b{number}"])
    p, y = means[:, :2].reshape(4, HIDDEN), torch.tensor([0, 1, 0, 1])
    gap = float((means[:, 0].mean(dim=0) - means[:, 1].mean(dim=0)).norm())
    optimiser = torch.optim.SGD([embedding, *first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(5):
        made = second(first(embedding).relu())
        distances = torch.cdist(p, made, compute_mode="donot_use_mm_for_euclid_dist")
        scores = -(distances + gap * nn.functional.one_hot(y, 3))
        optimiser.zero_grad()
        nn.functional.cross_entropy(scores, y).backward()
        optimiser.step()
    expected = second(first(embedding).relu()).detach()

    found = method.renewed_prototypes(task, server, replies)
    torch.testing.assert_close(found["prototypes"], expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found["prototypes"], prototypes_of(maker), atol=1e-3)
    assert found["known"].tolist() == [1.0, 1.0, 0.0]


@both
def test_the_pull_is_the_mean_squared_error_to_the_prototypes_there_are(kind: Kind) -> None:
    task, batch = mlp_task(), a_batch()
    y = nearby(task.initial, 1)
    prototypes = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(2))
    message = {"model": task.initial, "prototypes": prototypes, "known": torch.tensor([1.0, 0.0, 1.0])}
    method = kind()
    loss = method.objective(task, method.client(task), message)(y, batch)
    z = task.encode(y, batch.x).double().detach().numpy()
    pulls = [
        ((row - prototypes[c].double().numpy()) ** 2).mean() if c != 1 else 0.0
        for row, c in zip(z, batch.y.tolist(), strict=True)
    ]
    plain = FedAvg().objective(task, {}, message)(y, Batch(batch.x, batch.y))
    assert float(loss - plain) == pytest.approx(10 * np.mean(pulls), rel=1e-4)


@both
def test_what_makes_the_prototypes_does_not_travel(kind: Kind) -> None:
    task = mlp_task()
    method = kind(server_epochs=1)
    server = server_after(1, method, task, uneven_clients())
    assert "maker" in server
    assert set(method.down(task, server, 0)) <= {"model", "prototypes", "known"}
    assert "prototypes" in method.down(task, server, 0)


def test_without_the_pull_averaged_weights_are_fedavgs() -> None:
    ours = server_after(2, FedTGPAvg(lam=0.0, server_epochs=1), mlp_task(), uneven_clients())
    assert equal(ours["model"], server_after(2, FedAvg(), mlp_task(), uneven_clients())["model"])
