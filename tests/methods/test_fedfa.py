"""FedFA's channel weights, and channels without variance."""

from __future__ import annotations

import numpy as np
import torch

from methods.base import Tree
from methods.fedfa import FedFA, channel_weights
from tests.kit.tiny import (
    HIDDEN,
    a_batch,
    gradient,
    mlp_task,
)


def test_channels_in_which_clients_differ_weigh_more() -> None:
    means = torch.tensor([[0.0, 1.0, 5.0], [0.0, 2.0, 1.0], [0.0, 3.0, 0.0]])
    variance = means.double().numpy().var(axis=0)
    spread = variance / (1 + variance)
    np.testing.assert_allclose(channel_weights(means), 3 * spread / spread.sum(), rtol=1e-6)
    assert channel_weights(means)[0] == 0
    assert channel_weights(means[:1]).tolist() == [0, 0, 0]


def test_a_channel_without_variance_has_a_gradient() -> None:
    """A feature that is 0 for the whole batch, as rectifiers make them, gives no NaN."""
    task = mlp_task()
    dead = task.initial["encoder.2.bias"].clone()
    dead[0] = -100
    y = task.initial | Tree({"encoder.2.bias": dead})
    loss = FedFA(probability=1.0).objective(task, {}, {"gamma": torch.ones(HIDDEN)})
    grads = gradient(loss, y, a_batch())
    assert all(bool(torch.isfinite(leaf).all()) for leaf in grads.values())
