"""FEDGEN's terms, labels, generator and messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from methods.base import Task, Tree
from methods.fedgen import FedGen, diversity_loss, labels_at, make_latent
from tests.kit.tiny import (
    a_batch,
    close,
    federation,
    head_task,
    log_softmax,
    mlp_task,
    nearby,
    uneven_clients,
)


def fedgen_message(task: Task, rounds: int = 3) -> dict[str, Any]:
    server = FedGen().server(task)
    labels = torch.tensor([0.5, 0.0, 0.5])
    return {**server, "labels": labels, "rounds": torch.tensor(rounds)}


@pytest.mark.parametrize("make_task", [head_task, mlp_task])
def test_fedgen_adds_the_terms_of_numpy(make_task: Any) -> None:
    """Their values, which a loss records; training shows only their gradients."""
    task, batch = make_task(), a_batch()
    message, y = fedgen_message(task), nearby(task.initial, 1)
    value = float(FedGen(alpha=2.0, beta=3.0, generated=8).objective(task, {}, message)(y, batch))

    def head(z: torch.Tensor) -> np.ndarray[Any, Any]:
        weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
        return log_softmax(z.double().numpy() @ weight.T + bias)

    drawn = labels_at(batch.uniform(8), message["labels"])
    made = make_latent(message["generator"], batch.normal(8, 32, stream=1), drawn)
    like = make_latent(message["generator"], batch.normal(7, 32, stream=2), batch.y)
    own = head(task.encode(y, batch.x).detach())
    rows = np.arange(7)
    plain = -own[rows, batch.y].mean()
    classified = -head(made)[np.arange(8), drawn].mean()
    target = head(like)
    divergence = (np.exp(target) * (target - own)).sum(axis=1).mean()
    expected = plain + 0.98**3 * (2.0 * classified + 3.0 * divergence)
    assert value == pytest.approx(expected, rel=1e-5)


def test_labels_follow_their_shares() -> None:
    numbers = torch.arange(1000) / 1000
    assert labels_at(numbers, torch.tensor([0.2, 0.0, 0.5, 0.3])).bincount().tolist() == [200, 0, 500, 300]
    assert labels_at(torch.tensor([0.9999999]), torch.tensor([0.5, 0.4999998])).tolist() == [1]


def test_diversity_is_that_of_numpy_and_falls_as_vectors_part() -> None:
    draw = torch.Generator().manual_seed(0)
    noise, z = torch.randn(6, 4, generator=draw), torch.randn(6, 3, generator=draw)
    e, v = noise.double().numpy(), z.double().numpy()
    products = [((e[i] - e[j]) ** 2).mean() * np.abs(v[i] - v[j]).mean() for i in range(6) for j in range(6)]
    assert float(diversity_loss(noise, z)) == pytest.approx(math.exp(-np.mean(products)), rel=1e-5)
    assert float(diversity_loss(noise, torch.zeros(6, 3))) == 1
    assert float(diversity_loss(noise, 3 * z)) < float(diversity_loss(noise, z))


def test_fedgens_generator_learns_what_the_heads_agree_on() -> None:
    """Each class of the vectors is taken for its own by the clients that hold it; others have no say."""
    task = head_task(2)
    heads = [nearby(task.initial, 1, scale=2.0), nearby(task.initial, 2, scale=2.0)]
    counts = torch.tensor([[30.0, 10.0, 0.0], [0.0, 10.0, 30.0]])
    method = FedGen(server_steps=400, server_lr=0.01, eta=0.0, hidden=32)
    server = method.server(task)
    generator = method.taught(task, server, heads, counts)
    noise = torch.randn(200, 32, generator=torch.Generator().manual_seed(3))
    for label, holders in ((0, [0]), (1, [0, 1]), (2, [1])):
        z = make_latent(generator, noise, torch.full((200,), label))
        for holder in holders:
            assert float((task.classify(heads[holder], z).argmax(dim=1) == label).float().mean()) > 0.95
    # The first class's own weights in the second client's head cannot matter.
    other = heads[1] | Tree({"classifier.bias": heads[1]["classifier.bias"] + torch.tensor([9.0, 0.0, 0.0])})
    only_first = torch.tensor([[30.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    same = [method.taught(task, server, [heads[0], head], only_first) for head in (heads[1], other)]
    assert close(*same, tolerance=0)


def test_fedgens_first_round_is_fedavgs_and_then_the_weights_decay() -> None:
    method = FedGen(server_steps=2)
    run_, _ = federation(method, mlp_task(), uneven_clients())
    task = run_.problem.task
    assert list(method.down(task, run_.server, 0)) == ["model"]
    for number in (1, 2):
        run_.advance()
        message = method.down(task, run_.server, 0)
        assert int(message["rounds"]) == number
        np.testing.assert_allclose(message["labels"], np.array([9, 9, 6]) / 23, atol=0.05)
    counts = np.bincount(np.concatenate([each.y for each in uneven_clients()]))
    np.testing.assert_allclose(message["labels"], counts / counts.sum(), rtol=1e-6)
