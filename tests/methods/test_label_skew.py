"""FedLC, FedRS, FedETF and FedDecorr against numpy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from methods.base import Batch, FedAlgorithm, Tree
from methods.fedavg import FedAvg
from methods.feddecorr import FedDecorr, mean_square_correlation
from methods.fedetf import SCALE, FedETF, simplex
from methods.fedlc import FedLC
from methods.fedrs import FedRS
from methods.shared.label_counts import label_counts
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    a_batch,
    batches_of,
    cnn_task,
    draw,
    frozen_task,
    gradient,
    head_task,
    log_softmax,
    mlp_task,
    nearby,
    samples,
    server_after,
    uneven_clients,
)

COUNTS = torch.tensor([5.0, 1.0, 2.0])


def value(method: FedAlgorithm, params: Tree, batch: Batch, counts: torch.Tensor = COUNTS) -> float:
    return float(method.objective(mlp_task(), {}, {"model": params, "label_counts": counts})(params, batch))


def logits_of(params: Tree, batch: Batch) -> np.ndarray[Any, Any]:
    return mlp_task().logits(params, batch.x).detach().double().numpy()


def cross_entropy(logits: np.ndarray[Any, Any], y: torch.Tensor) -> float:
    return float(-log_softmax(logits)[np.arange(len(y)), y.numpy()].mean())


def test_labels_are_counted() -> None:
    assert label_counts(batches_of(samples([0, 2, 2, 2, 0], 1), 2), CLASSES).tolist() == [2, 0, 3]


def test_fedlc_lowers_logits_by_the_fourth_root_of_counts() -> None:
    params, batch = nearby(mlp_task().initial, 1), a_batch()
    lowered = logits_of(params, batch) - 0.7 * COUNTS.double().numpy() ** -0.25
    assert value(FedLC(tau=0.7), params, batch) == pytest.approx(cross_entropy(lowered, batch.y), rel=1e-5)


def test_fedlc_as_printed_sums_over_the_other_classes() -> None:
    params, batch = nearby(mlp_task().initial, 1), a_batch()
    lowered = logits_of(params, batch) - 0.7 * COUNTS.double().numpy() ** -0.25
    losses = [
        np.log(np.exp(np.delete(row, true)).sum()) - row[true]
        for row, true in zip(lowered, batch.y.tolist(), strict=True)
    ]
    found = value(FedLC(tau=0.7, sum_over="others"), params, batch)
    assert found == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("method", [FedLC(), FedETF()], ids=["fedlc", "fedetf"])
def test_absent_classes_drop_out_of_the_softmax(method: FedAlgorithm) -> None:
    """With one class alone there is nothing to tell apart: no loss."""
    data = samples([1, 1, 1], 3)
    batch, counts = Batch(data.x, data.y), torch.tensor([0.0, 3.0, 0.0])
    params = method.server(mlp_task())["model"]
    assert value(method, params, batch, counts) == pytest.approx(0, abs=1e-6)
    objective = method.objective(mlp_task(), {}, {"model": params, "label_counts": counts})
    assert float(gradient(objective, params, batch).norm()) == pytest.approx(0, abs=1e-6)


def test_fedrs_scales_the_logits_of_absent_classes() -> None:
    params, batch = nearby(mlp_task().initial, 1), a_batch()
    counts = torch.tensor([4.0, 0.0, 9.0])
    scaled = logits_of(params, batch) * np.array([1.0, 0.3, 1.0])
    found = value(FedRS(alpha=0.3), params, batch, counts)
    assert found == pytest.approx(cross_entropy(scaled, batch.y), rel=1e-5)


def test_fedrs_moves_the_weights_of_absent_classes_less() -> None:
    task, data = head_task(1), samples([0, 1, 0, 1, 0, 1], 4)
    moves = [
        server_after(1, method, task, [data])["model"]["classifier.weight"][2]
        - task.initial["classifier.weight"][2]
        for method in (FedRS(alpha=0.2), FedAvg())
    ]
    assert 0 < float(moves[0].norm()) < 0.5 * float(moves[1].norm())


def test_the_simplex_has_equal_angles() -> None:
    vectors = simplex(cnn_task()).double()
    products = np.full((CLASSES, CLASSES), -1 / (CLASSES - 1))
    np.fill_diagonal(products, 1)
    np.testing.assert_allclose(vectors.T @ vectors, products, atol=1e-6)


def test_fedetf_is_a_balanced_softmax_over_scaled_cosines() -> None:
    task, batch = mlp_task(), a_batch()
    params = nearby(FedETF(initial_scale=7.0).server(task)["model"], 2)
    h = task.encode(params, batch.x).detach().double().numpy()
    cosines = h / np.linalg.norm(h, axis=1, keepdims=True) @ simplex(task).double().numpy()
    logits = float(params[SCALE]) * cosines + np.log(COUNTS.double().numpy())
    assert value(FedETF(), params, batch) == pytest.approx(cross_entropy(logits, batch.y), rel=1e-5)


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


def test_the_penalty_is_the_mean_square_of_numpys_correlations() -> None:
    z = torch.randn(9, 4, generator=draw(5), dtype=torch.float64)
    found = mean_square_correlation(z, Batch(z, torch.zeros(9)))
    assert float(found) == pytest.approx(np.square(np.corrcoef(z.numpy().T)).mean(), rel=1e-6)


def test_padded_samples_do_not_count_in_correlations() -> None:
    z = torch.randn(9, 4, generator=draw(5), dtype=torch.float64)
    mask = torch.tensor([1.0] * 6 + [0.0] * 3)
    found = mean_square_correlation(z, Batch(z, torch.zeros(9), mask))
    assert float(found) == pytest.approx(np.square(np.corrcoef(z[:6].numpy().T)).mean(), rel=1e-6)


def test_feddecorr_adds_the_penalty_and_has_a_gradient_even_for_constant_features() -> None:
    task, batch = mlp_task(), a_batch()
    params = nearby(task.initial, 1)
    objectives = [method.objective(task, {}, {"model": params}) for method in (FedDecorr(beta=0.3), FedAvg())]
    with_penalty, plain = (float(objective(params, batch)) for objective in objectives)
    penalty = float(mean_square_correlation(task.encode(params, batch.x), batch))
    assert with_penalty == pytest.approx(plain + 0.3 * penalty, rel=1e-5)
    dead = params.map(torch.zeros_like)
    assert all(bool(torch.isfinite(leaf).all()) for leaf in gradient(objectives[0], dead, batch).values())


def test_feddecorr_is_refused_on_frozen_features() -> None:
    with pytest.raises(ValueError, match=r"^has no effect where nothing before the classifier is trained"):
        FedDecorr().check(frozen_task())
