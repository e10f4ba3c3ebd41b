"""Global models of several cells that are judged at once: the predictions of each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.contract.rules.sweeps import two_settings
from bench.contract.runs import run
from bench.engine.asked import Asked, Round
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.stacking.joint import JointRounds
from bench.engine.stacking.servers import predicted_together
from methods.core.batches import Samples
from tests.kit.contract import make_method, tiny_problem

DIFFERENT = ("fedavg", "fedlsa", "fedetf", "fedproto_avg", "fedrod", "ggeur+fedavg")
"""Models that predict in different ways; the contract has all methods in stacks of cells."""


def models_of(name: str, seeds: tuple[int, ...] = (0,)) -> list[Asked]:
    """Global models of two settings per seed after a round, with the same samples to be judged on."""
    found: list[Asked] = []
    for seed in seeds:
        problem = tiny_problem(make_method(name), seed=seed)
        task = replace(problem.task, records_losses=True)
        if found:  # the same frozen weights
            task = replace(task, model=found[0].problem.task.model)
        for cell in two_settings(replace(problem, task=task)):
            cell = replace(cell, task=replace(cell.task, records_losses=True, model=task.model))
            federation = run(cell, StackedHost(cell), rounds=1)
            sets = found[0].given if found else list(problem.test.values())
            found.append(federation.predicting(sets))
    return found


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # in tiny transformers, which never stack
@pytest.mark.parametrize("name", DIFFERENT)
def test_models_judged_together_predict_what_each_does_alone(name: str) -> None:
    method = make_method(name)
    assert method.has_global_model and method.stacks_predictions
    models = models_of(name, seeds=(0,) if method.reads_seed else (0, 1))
    for model, together in zip(models, predicted_together(models), strict=True):
        for (classes, loss), found in zip(model.alone(), together, strict=True):
            assert torch.equal(found[0], classes)
            assert found[1] == pytest.approx(loss, abs=1e-5)


def judged(sets: Sequence[Sequence[Samples]]) -> tuple[list[Exception], list[Any], list[Asked]]:
    """Two cells after a round, judged on these samples: what went wrong, what came of it, and the models."""
    hosts = [StackedHost(each) for each in two_settings(tiny_problem(make_method("fedavg")))]
    found: dict[Any, Any] = {}
    models: dict[Any, Asked] = {}

    def round_of(host: StackedHost, samples: Sequence[Samples]) -> Round:
        federation = Federation(host.problem, host)
        yield from federation.advancing()
        models[host] = federation.predicting(samples)
        found[host] = yield models[host]

    failed = JointRounds().advance(
        {host: round_of(host, samples) for host, samples in zip(hosts, sets, strict=True)}
    )
    return list(failed.values()), [found[host] for host in hosts if host in found], list(models.values())


def test_models_with_other_samples_are_judged_apart() -> None:
    tests = list(tiny_problem(make_method("fedavg")).test.values())
    others = [Samples(each.x[:5].clone(), each.y[:5]) for each in tests]
    failed, found, models = judged([tests, others])
    assert not failed
    for each, model in zip(found, models, strict=True):
        assert [len(classes) for classes, _ in each] == [len(samples.y) for samples in model.given]
        assert all(torch.equal(a, b) for (a, _), (b, _) in zip(each, model.alone(), strict=True))


def test_a_model_that_cannot_be_judged_fails_alone() -> None:
    tests = list(tiny_problem(make_method("fedavg")).test.values())
    failed, found, _ = judged([tests, [samples._replace(x=samples.x[:, :1]) for samples in tests]])
    assert len(failed) == len(found) == 1
