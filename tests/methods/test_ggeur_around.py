"""GGEUR around every method that works on embeddings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.contract.models import MODELS
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.suite.methods import METHODS
from tests.kit.contract import PLAIN, accepted_model, make_method, run, tiny_problem, tiny_task

in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def model_on_embeddings(name: str) -> str:
    """The tiny head, or for methods with a model of their own what stands in for it."""
    method = make_method(name)
    model = accepted_model(method) if method.own_model else "head"
    try:
        method.check(tiny_task(model, PLAIN, 3, 0))
    except ValueError as refusal:
        pytest.skip(f"{name} {refusal}")
    return model


@pytest.mark.parametrize("name", [name for name in METHODS.names() if name != "central"])
def test_ggeur_goes_around_every_method_on_embeddings(name: str) -> None:
    model = model_on_embeddings(name)
    method = make_method(f"ggeur+{name}", inner=make_method(name))
    assert len(MODELS[model].shape) == 1
    problem = replace(tiny_problem(method, model), method=method)
    ends = []
    for kind in (LoopHost, StackedHost):
        host = kind(problem)
        federated = run(problem, host, rounds=2)
        assert len(host.made(2, 1).y) > len(problem.train[2].y)
        ends.append([method.predict(problem.task, federated.server, host.state(0), problem.test["near"].x)])
    one, other = (end[0].detach() for end in ends)
    np.testing.assert_allclose(one, other, atol=1e-4)
