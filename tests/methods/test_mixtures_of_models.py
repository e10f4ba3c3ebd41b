"""FedALA's and FedPAC's mixtures: weights and heads against SciPy, NumPy and loops written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from bench.engine.hosts.loop import LoopHost
from methods.base import Reply, Tree
from methods.core.batches import RaggedBatches, Samples
from methods.fedala import FedALA
from methods.fedpac import FedPAC, class_statistics, head_weights
from methods.shared.simplex import onto_simplex, smallest_form
from tests.kit.by_hand import RATE, mlp_round, shifted, slope
from tests.kit.contract import assert_close, make_method, run, tiny_problem

HEAD = ("classifier.weight", "classifier.bias")


@pytest.mark.parametrize("layers", ["classifier", "all"])
def test_fedala_learns_where_to_start_between_both_models(layers: Any) -> None:
    method = FedALA(eta=2.0, passes=2, layers=layers)

    def own(task: Any) -> Any:
        return {"model": shifted(0.5)(task), "weights": method.mixed_layers(task).zeros() + 0.7}

    done = mlp_round(method, own)
    task, sent, old, weights = done.task, done.message["model"], done.state["model"], done.state["weights"]
    names = HEAD if layers == "classifier" else tuple(sent)

    def start(weights: Tree) -> Tree:
        return sent | (old.only(names) + (sent.only(names) - old.only(names)) * weights)

    for _ in range(2):
        grads = slope(task, start(weights), done.x, done.y).only(names)
        step = (sent.only(names) - old.only(names)) * grads
        weights = (weights - 2.0 * step).map(lambda leaf: leaf.clamp(0, 1))
    y = start(weights)
    for at in done.parts:
        y = y - RATE * slope(task, y, done.x[at], done.y[at])
    assert_close(done.kept["weights"], weights, tolerance=1e-6)
    assert_close(done.reply["model"], y, tolerance=1e-6)
    assert_close(done.kept["model"], y, tolerance=1e-6)
    assert any(bool((leaf != 0.7).any()) for leaf in weights.values())


def test_fedala_predicts_with_shares_of_both_models() -> None:
    method = FedALA()
    task = tiny_problem(method, "mlp").task
    server, own = {"model": shifted(1.0)(task)}, shifted(0.5)(task)
    uppers = own.only(HEAD)

    def predicting(shares: Tree) -> Tree:
        return method.parameters(task, server, {"model": own, "weights": shares})

    whole, none = predicting(uppers.zeros() + 1), predicting(uppers.zeros())
    assert_close(whole, server["model"], tolerance=0)
    assert_close(none, server["model"] | uppers, tolerance=0)
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


def test_the_statistics_are_numpys() -> None:
    problem = tiny_problem(make_method("fedpac"))
    task, (x, y) = problem.task, problem.train[1]
    body = FedPAC().server(task)["model"]
    found = class_statistics(task, body, RaggedBatches(Samples(x, y), [torch.arange(12)], 4))
    z, labels = task.embed(body, x).double().numpy(), y.numpy()
    h = np.stack([z[labels == c].sum(axis=0) / len(z) for c in range(3)])
    v = ((z**2).sum(axis=1).mean() - (h**2).sum()) / len(z)
    np.testing.assert_allclose(found.h, h, atol=1e-6)
    np.testing.assert_allclose(found.v, v, atol=1e-6)
    np.testing.assert_allclose(found.means, [z[labels == c].mean(axis=0) for c in range(3)], atol=1e-6)


def test_head_first_then_body_with_a_pull_to_known_centres() -> None:
    known = torch.tensor([1.0, 0.0, 1.0])

    def message(task: Any) -> Any:
        sent = FedPAC().down(task, FedPAC().server(task), 0)
        return sent | {"centres": torch.ones(3, 8), "known": known}

    done = mlp_round(FedPAC(lam=0.6), message=message)
    leaves = {name: leaf.clone() for name, leaf in (done.message["model"] | done.message["head"]).items()}

    def descend(at: torch.Tensor, own: list[str], pulled: bool) -> None:
        for name in own:
            leaves[name].requires_grad_()
        z = done.task.embed(Tree(leaves), done.x[at])
        loss = torch.nn.functional.cross_entropy(z @ leaves[HEAD[0]].T + leaves[HEAD[1]], done.y[at])
        if pulled:
            loss = loss + 0.6 * (((z - 1) ** 2).mean(dim=1) * known[done.y[at]]).mean()
        for name, grad in zip(own, torch.autograd.grad(loss, [leaves[name] for name in own]), strict=True):
            leaves[name] = (leaves[name] - RATE * grad).detach()

    for at in done.parts:
        descend(at, list(HEAD), pulled=False)
    for at in done.parts:
        descend(at, [name for name in leaves if name not in HEAD], pulled=True)
    assert_close(done.reply["model"] | done.reply["head"], Tree(leaves), tolerance=1e-6)
    assert_close(done.kept["head"], done.reply["head"], tolerance=0.0)


def test_clients_that_stay_away_keep_their_heads() -> None:
    problem = tiny_problem(make_method("fedpac"))
    method, task = problem.method, problem.task
    server = run(problem, LoopHost(problem), rounds=1).server
    messages = [(client, method.down(task, server, client)) for client in (0, 2)]
    replies: list[Reply] = LoopHost(problem).run(0, 2, messages)
    after = method.aggregate(task, server, replies)
    for name, leaf in after["heads"].items():
        assert torch.equal(leaf[1], server["heads"][name][1])
        assert not torch.equal(leaf[0], server["heads"][name][0])
    counts = torch.stack([reply.content["counts"] for reply in replies])
    means = torch.stack([reply.content["means"] for reply in replies])
    expected = (counts[:, :, None] * means).sum(dim=0) / counts.sum(dim=0)[:, None]
    torch.testing.assert_close(after["centres"], expected)
