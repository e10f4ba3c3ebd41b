"""`robust+METHOD`: the rules against NumPy and SciPy, and a round with false replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import trim_mean

from bench.engine.clients.loop import LoopHost
from bench.errors import UserError
from bench.suite.methods import METHODS
from bench.validation import validated
from methods.base import Reply, Tree
from methods.shared.vectors import flattened
from methods.wrappers.robust import RULES
from tests.kit.contract import make_method, run, tiny_problem

Array = np.ndarray[Any, Any]


def krum_scores(points: Array, false: int) -> list[float]:
    """Blanchard et al.'s s(k), one model after the other."""
    scores = []
    for k, point in enumerate(points):
        others = sorted(float(((point - other) ** 2).sum()) for j, other in enumerate(points) if j != k)
        scores.append(sum(others[: max(1, len(points) - false - 2)]))
    return scores


def geometric_median(points: Array, false: int) -> Array:
    found = minimize(lambda v: np.linalg.norm(points - v, axis=1).sum(), points.mean(axis=0), tol=1e-12)
    return np.asarray(found.x)


EXPECTED: dict[str, Callable[[Array, int], Array]] = {
    "median": lambda points, false: np.median(points, axis=0),
    "trimmed_mean": lambda points, false: trim_mean(points, false / len(points) + 1e-9, axis=0),
    "krum": lambda points, false: points[np.argmin(krum_scores(points, false))],
    "multi_krum": lambda points, false: points[
        np.argsort(krum_scores(points, false))[: len(points) - false]
    ].mean(axis=0),
    "geometric_median": geometric_median,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("count", "false"), [(10, 3), (7, 2), (3, 1), (1, 0)])
def test_a_rule_is_its_formula(rule: str, count: int, false: int) -> None:
    points = np.random.default_rng(count).normal(size=(count, 5))
    points[:false] += 30
    found = RULES[rule](torch.tensor(points), false, 500)
    np.testing.assert_allclose(found.numpy(), EXPECTED[rule](points, false), atol=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_two_false_replies_out_of_seven_do_no_harm(rule: str) -> None:
    task = tiny_problem(make_method("fedavg")).task
    draw = torch.Generator().manual_seed(0)
    models = [
        task.initial.map(lambda leaf: leaf + 0.01 * torch.randn(leaf.shape, generator=draw)) for _ in range(7)
    ]
    models[2], models[5] = (models[k] * -1000.0 for k in (2, 5))
    replies = [Reply(k, 10, {"model": model}) for k, model in enumerate(models)]
    ends: dict[str, Tree] = {}
    for name in ("fedavg", "robust+fedavg"):
        method = make_method(name, **({"rule": rule} if "+" in name else {}))
        state = method.aggregate(task, method.server(task), replies)
        ends[name] = state.get("inner", state)["model"]
    moved = {name: float((flattened(end) - flattened(task.initial)).norm()) for name, end in ends.items()}
    assert moved["robust+fedavg"] < 0.2 < 100 < moved["fedavg"]


def test_of_one_client_every_rule_takes_the_model_it_sends() -> None:
    problem = tiny_problem(make_method("fedavg"), sizes=(7,))
    plain = run(problem, LoopHost(problem), rounds=1).server["model"]
    for rule in RULES:
        problem = tiny_problem(make_method("robust+fedavg", rule=rule), sizes=(7,))
        found = run(problem, LoopHost(problem), rounds=1).server["inner"]["model"]
        assert torch.allclose(flattened(found), flattened(plain), atol=1e-7)


def test_it_goes_around_other_wrappers_and_server_optimisers() -> None:
    for name in ("robust+ggeur+fedavg", "robust+fedadam", "compressed+robust+fedavg"):
        problem = tiny_problem(make_method(name))
        assert run(problem, LoopHost(problem), rounds=1).advance()["dropped"] == 0


@pytest.mark.parametrize("name", ["scaffold", "fedproto", "local", "aligned+fedavg"])
def test_methods_that_do_more_than_average_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"cannot aggregate robustly .*whose server does more than average"):
        validated(METHODS.load(f"robust+{name}"), {}, "method")
