"""AFL and DeepAFL against Fed3R, numpy and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bench.engine.federation import Federation
from methods.afl import AFL
from methods.base import FedAlgorithm, Samples
from methods.deepafl import DeepAFL
from methods.fed3r import Fed3R
from tests.kit.tiny import CLASSES, WIDTH, federation, head_task, mlp_task, samples, uneven_clients

SMALL = {"layer_width": 4, "lam": 1e-6, "block_lam": 1e-6}


def after_prelude(method: FedAlgorithm, clients: list[Samples]) -> tuple[Federation, dict[str, Any]]:
    run, _ = federation(method, head_task(len(clients)), clients)
    return run, run.prelude()


def weights_of(method: FedAlgorithm, clients: list[Samples]) -> np.ndarray[Any, Any]:
    run, _ = after_prelude(method, clients)
    found: np.ndarray[Any, Any] = run.server["weights"].numpy()
    return found


def as_one_client(clients: list[Samples]) -> list[Samples]:
    return [Samples(*(torch.cat(parts) for parts in zip(*clients, strict=True)))]


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
def test_afl_is_fed3r_without_a_ridge(gamma: float) -> None:
    limit = weights_of(Fed3R(lam=1e-12, normalise=False), uneven_clients())
    np.testing.assert_allclose(
        weights_of(AFL(gamma=gamma, bias=True), uneven_clients()), limit, rtol=0, atol=1e-8
    )


def test_afl_with_its_ridge_is_fed3r_with_that_of_all_clients() -> None:
    ours = weights_of(AFL(gamma=0.2, bias=True, keep_ridge=True), uneven_clients())
    np.testing.assert_allclose(
        ours, weights_of(Fed3R(lam=3 * 0.2, normalise=False), uneven_clients()), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("method", [AFL(), DeepAFL(**SMALL)], ids=["afl", "deepafl"])
def test_it_does_not_matter_how_samples_are_spread(method: FedAlgorithm) -> None:
    together = weights_of(method, as_one_client(uneven_clients()))
    np.testing.assert_allclose(weights_of(method, uneven_clients()), together, rtol=0, atol=1e-7)


def test_afl_of_fewer_samples_than_features_has_the_smallest_weights_that_fit() -> None:
    clients = [samples([0, 1], 1), samples([2, 1], 2)]
    x, y = (part.numpy() for part in as_one_client(clients)[0])
    expected = np.linalg.pinv(x.astype(np.float64)) @ np.eye(CLASSES)[y]
    np.testing.assert_allclose(weights_of(AFL(), clients), expected, rtol=0, atol=1e-8)


def test_afl_takes_out_the_ridge_of_those_who_answered() -> None:
    first, *others = uneven_clients()
    silent = Samples(torch.full_like(first.x, torch.nan), first.y)
    found = weights_of(AFL(gamma=10.0), [silent, *others])
    np.testing.assert_allclose(found, weights_of(AFL(gamma=10.0), others), rtol=0, atol=1e-8)


def test_afl_sends_a_triangle_and_a_solution_in_double_precision() -> None:
    run, record = after_prelude(AFL(), uneven_clients())
    assert record["bytes_up"] == 3 * 8 * (WIDTH * (WIDTH + 1) // 2 + WIDTH * CLASSES)
    assert record["bytes_down"] == 0
    record = run.advance()
    assert record["bytes_up"] == record["bytes_down"] == 0


def test_every_block_of_deepafl_fits_the_training_data_better() -> None:
    clients = uneven_clients()
    x, y = as_one_client(clients)[0]
    errors = []
    for layers in range(5):
        method = DeepAFL(layers=layers, **SMALL)
        run, _ = after_prelude(method, clients)
        scores = method.predict(run.problem.task, run.server, None, x).numpy()
        errors.append(float(np.square(scores - np.eye(CLASSES)[y]).sum()))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.85 * errors[0]


def test_deepafl_sends_the_blocks_so_far_and_joint_sums() -> None:
    run, record = after_prelude(DeepAFL(layers=2, **SMALL), uneven_clients())
    joint, last = 8 * 9 // 2 + 8 * CLASSES, 4 * 5 // 2 + 4 * CLASSES
    assert record["bytes_up"] == 3 * 8 * (2 * joint + last)
    assert record["bytes_down"] == 3 * 8 * (1 + 2) * 4 * 4
    record = run.advance()
    assert record["bytes_up"] == record["bytes_down"] == 0


@pytest.mark.parametrize("method", [AFL(), DeepAFL()], ids=["afl", "deepafl"])
def test_trained_features_are_refused(method: FedAlgorithm) -> None:
    with pytest.raises(ValueError, match=r"^works on features that are not trained"):
        method.check(mlp_task())
