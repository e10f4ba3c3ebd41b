"""FedFA's noise and channel weights against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import Batch, Tree
from methods.fedfa import FedFA, channel_weights, noise_scale
from tests.kit.tiny import (
    HIDDEN,
    a_batch,
    batches_of,
    gradient,
    head_task,
    log_softmax,
    mlp_task,
    nearby,
    uneven_clients,
)

in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def test_noise_has_the_size_of_the_batch_and_of_the_channels_weight() -> None:
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    gamma = torch.tensor([0.0, 1.0, 3.0])
    expected = np.sqrt((gamma.numpy() + 1) * z.double().numpy().var(axis=0))
    whole = Batch(z, torch.zeros(5))
    np.testing.assert_allclose(noise_scale(z, whole, gamma), expected, rtol=1e-5)
    padded = Batch(torch.cat([z, 9 * z]), torch.zeros(10), mask=torch.tensor([1.0] * 5 + [0.0] * 5))
    np.testing.assert_allclose(noise_scale(padded.x, padded, gamma), expected, rtol=1e-5)


def test_channels_in_which_clients_differ_weigh_more() -> None:
    means = torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, 1.0], [0.0, 3.0, 0.0]])
    variance = means.double().numpy().var(axis=0)
    spread = variance / (1 + variance)
    np.testing.assert_allclose(channel_weights(means), 3 * spread / spread.sum(), rtol=1e-6)
    assert channel_weights(means)[0] == 0
    assert channel_weights(means[:1]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("make_task", [head_task, mlp_task])
def test_fedfa_classifies_the_moved_features(make_task: Any) -> None:
    task, batch = make_task(), a_batch()
    y = nearby(task.initial, 1)
    gamma = torch.linspace(0, 2, task.model.feature_size)
    z = task.encode(y, batch.x).detach().double().numpy()
    noise = batch.normal(*z.shape, stream=1).double().numpy()
    moved = z + noise * np.sqrt((gamma.numpy() + 1) * z.var(axis=0))
    weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    rows = np.arange(len(z))
    expected = [-log_softmax(at @ weight.T + bias)[rows, batch.y].mean() for at in (moved, z)]
    always = FedFA(probability=1.0).objective(task, {}, {"gamma": gamma})(y, batch)
    assert float(always) == pytest.approx(expected[0], rel=1e-5)
    sometimes = FedFA(probability=0.5).objective(task, {}, {"gamma": gamma})
    values = [float(sometimes(y, batch._replace(key=key))) for key in range(400)]
    untouched = np.isclose(values, expected[1], rtol=1e-6).mean()
    assert abs(untouched - 0.5) < 4 * 0.5 / math.sqrt(400)


def test_a_channel_without_variance_has_a_gradient() -> None:
    """A feature that is 0 for the whole batch, as rectifiers make them, gives no NaN."""
    task = mlp_task()
    dead = task.initial["encoder.2.bias"].clone()
    dead[0] = -100
    y = task.initial | Tree({"encoder.2.bias": dead})
    loss = FedFA(probability=1.0).objective(task, {}, {"gamma": torch.ones(HIDDEN)})
    grads = gradient(loss, y, a_batch())
    assert all(bool(torch.isfinite(leaf).all()) for leaf in grads.values())


def test_clients_of_fedfa_send_the_mean_of_their_features() -> None:
    task, data = head_task(), uneven_clients()[1]
    message = FedFA().down(task, FedFA().server(task), 0)
    reply, _ = FedFA().local(task, {}, message, batches_of(data, size=5))
    np.testing.assert_allclose(reply["mean"], data.x.double().numpy().mean(axis=0), atol=1e-6)
