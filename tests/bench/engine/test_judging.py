"""Global models of several cells that are judged at once: the predictions of each by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.contract.rules.sweeps import changed
from bench.contract.runs import run
from bench.engine.evaluation import Judging
from bench.engine.hosts.judging import joint_judging, judged_together
from bench.engine.hosts.seeds import may_join
from bench.engine.hosts.stacked import StackedHost
from methods.core.batches import Samples
from tests.kit.contract import make_method, tiny_problem
from tests.kit.contract_traffic import SHIPPED


def models_of(name: str, seeds: tuple[int, ...] = (0,)) -> list[Judging]:
    """Global models of two settings per seed after a round, with the same samples to be judged on.

    Seeds whose models differ in frozen parts too are left out, as their cells are not computed together.
    """
    found: list[Judging] = []
    hosts: list[StackedHost] = []
    for seed in seeds:
        problem = tiny_problem(make_method(name), seed=seed)
        task = replace(problem.task, records_losses=True)
        for method in (problem.method, changed(problem.method)):
            cell = replace(problem, method=method, task=task)
            hosts.append(StackedHost(cell))
            federation = run(cell, hosts[-1], rounds=1)
            sets = found[0].sets if found else list(problem.test.values())
            if seed == seeds[0] or may_join(hosts[-1], hosts[0]):
                found.append(Judging(federation.problem, federation.server, sets))
    return found


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # in tiny transformers, which never stack
@pytest.mark.parametrize("name", SHIPPED)
def test_models_judged_together_predict_what_each_does_alone(name: str) -> None:
    if not make_method(name).has_global_model:
        pytest.skip("there is no global model")
    models = models_of(name, seeds=(0, 1))
    for model, together in zip(models, judged_together(models), strict=True):
        for alone, found in zip(model.alone(), together, strict=True):
            assert torch.equal(found.classes, alone.classes)
            assert found.loss == pytest.approx(alone.loss, abs=1e-5)


def test_models_with_other_samples_are_judged_apart() -> None:
    first, second = models_of("fedavg")
    other = second._replace(sets=[Samples(each.x[:5].clone(), each.y[:5]) for each in second.sets])
    found = joint_judging().to([first, other])
    for model, judged in zip((first, other), found, strict=True):
        assert not isinstance(judged, Exception)
        assert [len(each.classes) for each in judged] == [len(samples.y) for samples in model.sets]


def test_a_model_that_cannot_be_judged_fails_alone() -> None:
    first, second = models_of("fedavg")
    found = joint_judging().to([first, second._replace(server={})])
    assert isinstance(found[1], KeyError)
    assert not isinstance(found[0], Exception)
    for judged, alone in zip(found[0], first.alone(), strict=True):
        assert torch.equal(judged.classes, alone.classes)
