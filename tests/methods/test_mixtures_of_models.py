"""FedALA's and FedPAC's mixtures: limit cases, and weights against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from methods.base import Tree
from methods.fedala import FedALA
from methods.fedpac import head_weights
from methods.shared.simplex import onto_simplex, smallest_form
from tests.kit.contract import assert_close, tiny_problem
from tests.kit.tiny import nearby

HEAD = ("classifier.weight", "classifier.bias")


def test_fedala_predicts_with_shares_of_both_models() -> None:
    method = FedALA()
    task = tiny_problem(method, "mlp").task
    server, own = {"model": nearby(task.initial, 1)}, nearby(task.initial, 2)
    uppers = own.only(HEAD)

    def predicting(shares: Tree) -> Tree:
        return method.parameters(task, server, {"model": own, "weights": shares})

    whole, none = predicting(uppers.zeros() + 1), predicting(uppers.zeros())
    assert_close(whole, server["model"], tolerance=1e-6)
    assert_close(none, server["model"] | uppers, tolerance=1e-6)
    quarter = predicting(uppers.zeros() + 0.25)
    assert_close(quarter, 0.25 * whole + 0.75 * none, tolerance=1e-6)


# FedPAC


def by_scipy(form: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    m = len(form)
    found = minimize(
        lambda a: a @ form @ a,
        np.full(m, 1 / m),
        jac=lambda a: 2 * form @ a,
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_the_form_is_smallest_where_scipy_finds_it(m: int) -> None:
    rng = np.random.default_rng(m)
    factors = rng.normal(size=(3, m, 2))
    forms = factors @ factors.transpose(0, 2, 1) + np.stack(
        [np.diag(rng.uniform(0.01, 1, m)) for _ in range(3)]
    )
    found = smallest_form(torch.tensor(forms)).numpy()
    for alpha, form in zip(found, forms, strict=True):
        expected = by_scipy(form)
        assert alpha.sum() == pytest.approx(1)
        assert (alpha >= 0).all()
        assert alpha @ form @ alpha <= expected @ form @ expected + 1e-9
        np.testing.assert_allclose(alpha, expected, atol=1e-3)


def test_the_projection_onto_the_simplex_is_the_nearest_point() -> None:
    points = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    near = onto_simplex(points)
    torch.testing.assert_close(near.sum(dim=1), torch.ones(20, dtype=torch.float64))
    assert bool((near >= 0).all())
    others = torch.distributions.Dirichlet(torch.ones(4, dtype=torch.float64)).sample((2000,))
    best = (others[None] - points[:, None]).norm(dim=2).min(dim=1).values
    assert bool(((near - points).norm(dim=1) <= best + 1e-9).all())


def test_similar_clients_share_heads_and_different_ones_do_not() -> None:
    h = torch.zeros(4, 3, 2)
    h[2:, 0] = 50.0
    alpha = head_weights(h, torch.ones(4))
    expected = torch.block_diag(torch.full((2, 2), 0.5), torch.full((2, 2), 0.5)).double()
    torch.testing.assert_close(alpha, expected, atol=1e-3, rtol=0)
    by_noise = head_weights(torch.zeros(2, 3, 2), torch.tensor([1.0, 3.0]))  # the inverse of the variances
    torch.testing.assert_close(by_noise[0], torch.tensor([0.75, 0.25]).double(), atol=1e-4, rtol=0)
