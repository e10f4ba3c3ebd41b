"""FedLC, FedETF and FedDecorr: absent classes, angles and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from methods.base import Batch, FedAlgorithm, Tree
from methods.feddecorr import FedDecorr
from methods.fedetf import FedETF, simplex
from methods.fedlc import FedLC
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    a_batch,
    cnn_task,
    frozen_task,
    gradient,
    mlp_task,
    samples,
    server_after,
    uneven_clients,
)

COUNTS = torch.tensor([5.0, 1.0, 2.0])


def value(method: FedAlgorithm, params: Tree, batch: Batch, counts: torch.Tensor = COUNTS) -> float:
    return float(method.objective(mlp_task(), {}, {"model": params, "label_counts": counts})(params, batch))


@pytest.mark.parametrize("method", [FedLC(), FedETF()], ids=["fedlc", "fedetf"])
def test_absent_classes_drop_out_of_the_softmax(method: FedAlgorithm) -> None:
    """With one class alone there is nothing to tell apart: no loss."""
    data = samples([1, 1, 1], 3)
    batch, counts = Batch(data.x, data.y), torch.tensor([0.0, 3.0, 0.0])
    params = method.server(mlp_task())["model"]
    assert value(method, params, batch, counts) == pytest.approx(0, abs=1e-6)
    objective = method.objective(mlp_task(), {}, {"model": params, "label_counts": counts})
    assert float(gradient(objective, params, batch).norm()) == pytest.approx(0, abs=1e-6)


def test_the_simplex_has_equal_angles() -> None:
    vectors = simplex(cnn_task()).double()
    products = np.full((CLASSES, CLASSES), -1 / (CLASSES - 1))
    np.fill_diagonal(products, 1)
    np.testing.assert_allclose(vectors.T @ vectors, products, atol=1e-6)


def test_fedetf_trains_features_and_scale_and_sends_no_classifier() -> None:
    server = server_after(2, FedETF(), mlp_task(), uneven_clients())
    start = FedETF().server(mlp_task())["model"]
    assert not any(name.startswith("classifier") for name in server["model"])
    assert all(not torch.equal(server["model"][name], start[name]) for name in start)


def test_fedetf_needs_room_for_its_simplex() -> None:
    with pytest.raises(ValueError, match=r"^has no effect where nothing before the classifier is trained"):
        FedETF().check(frozen_task())
    with pytest.raises(ValueError, match=r"^needs features at least as wide as there are classes, but 6 < 7"):
        FedETF().check(replace(mlp_task(), classes=HIDDEN + 1))


def test_feddecorr_has_a_gradient_even_for_constant_features() -> None:
    task = mlp_task()
    dead = task.initial.map(torch.zeros_like)
    grads = gradient(FedDecorr().objective(task, {}, {"model": dead}), dead, a_batch())
    assert all(bool(torch.isfinite(leaf).all()) for leaf in grads.values())


def test_feddecorr_is_refused_on_frozen_features() -> None:
    with pytest.raises(ValueError, match=r"^has no effect where nothing before the classifier is trained"):
        FedDecorr().check(frozen_task())
