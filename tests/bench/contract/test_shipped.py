"""What the shipped methods do beyond the contract: the bytes of their papers, and models from the server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bench.contract.fixtures import MOMENTUM
from bench.contract.nests import differing
from bench.contract.runs import SOME, Course, run, served_model, standing
from bench.engine.clients.base import Host
from bench.engine.clients.stacked import CACHED_FLOATS, StackedHost
from bench.engine.federation import Federation
from bench.engine.stacking.samples import Pool, evenly_cut
from methods.base import FedAlgorithm, Samples
from methods.core.optional import MakesSamples
from methods.wrappers.base import Wrapper
from tests.kit.contract import NORM_BATCH, assert_close, in_one_process, make_method, tiny_problem
from tests.kit.contract_traffic import SHIPPED, TRAFFIC, Traffic

each_shipped = pytest.mark.parametrize("name", SHIPPED)
DIFFERENT = ("fedavg", "scaffold", "fedproto", "fedgen", "ggeur+fedavg")
"""A few that keep and send different things."""


@each_shipped
@in_one_process
def test_bytes_are_those_worked_out_by_hand(name: str, kind: type[Host]) -> None:
    problem = tiny_problem(make_method(name))
    federation = Federation(problem, kind(problem))
    prelude = federation.prelude()
    first, second = federation.advance(), federation.advance()
    counted = Traffic(
        up=(first["bytes_up"], second["bytes_up"]),
        down=(first["bytes_down"], second["bytes_down"]),
        prelude=(prelude["bytes_up"], prelude["bytes_down"]),
    )
    assert counted == TRAFFIC[name]


@each_shipped
def test_every_message_carries_the_current_model_of_the_server(name: str) -> None:
    course = Course.of(tiny_problem(make_method(name)), rounds=3, participation=SOME)
    if served_model(course.servers[0]) is None:
        pytest.skip("the server has no model")
    for work in course.rounds_work:
        current = served_model(course.server_copies[work.number])
        assert differing(work.copies["message"]["model"], current) == []
        assert differing(served_model(course.server_copies[work.number + 1]), current)


@each_shipped
def test_models_start_from_the_weights_of_the_task(name: str) -> None:
    problem = tiny_problem(make_method(name))
    method, task = problem.method, problem.task
    for state in (method.server(task), method.client(task)):
        model = served_model(state)
        if model is not None:
            assert differing(model, task.initial.only(model)) == []


@each_shipped
def test_batch_norm_is_averaged_but_for_its_counter(name: str) -> None:
    method = make_method(name)
    if isinstance(method, MakesSamples):
        pytest.skip("makes samples of its own")
    course = Course.of(tiny_problem(method, "norm", batch_size=NORM_BATCH), rounds=1)
    model = served_model(course.federation.server)
    if model is None:
        pytest.skip("the server has no model")
    if "encoder.1.running_mean" not in model:
        pytest.skip("batch norm stays with the clients")
    assert [name for work in course.work for name in work.edited] == []
    weighting = getattr(_unwrapped(method), "weighting", None)
    weights = [len(y) if weighting == "samples" else 1 for _, y in course.problem.train.values()]
    if "alignment" in course.federation.server:
        weights = course.federation.server["alignment"]["weights"].tolist()
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        sent = [work.copies["reply"]["model"][buffer].double().numpy() for work in course.rounds_work]
        np.testing.assert_allclose(model[buffer], np.average(sent, axis=0, weights=weights), atol=1e-6)
    assert model["encoder.1.num_batches_tracked"].dtype == torch.int64


def _unwrapped(method: FedAlgorithm) -> Any:
    return method.inner if isinstance(method, Wrapper) else method


# The stacked executor


class OneAtATime(StackedHost):
    def at_once(self, pool: Pool) -> int:
        return 1


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_stack_may_be_trained_in_parts(name: str) -> None:
    problem = tiny_problem(make_method(name), optimiser=MOMENTUM)
    ends = []
    for kind in (StackedHost, OneAtATime):
        host = kind(problem)
        ends.append(standing(run(problem, host, rounds=2, participation=SOME), host))
    assert_close(*ends, tolerance=1e-6)


def test_as_many_clients_are_stacked_as_fit_into_the_cache() -> None:
    host = StackedHost(replace(tiny_problem(make_method("fedavg")), batch_size=100))
    labels = torch.zeros(100, dtype=torch.int64)
    wide, narrow = (
        Pool.of({0: [Samples(torch.zeros(1, 1).expand(100, width), labels)]})
        for width in (CACHED_FLOATS // 250, 5)
    )
    assert host.at_once(wide) == 2
    assert host.at_once(narrow) > 2000


@pytest.mark.parametrize(
    ("count", "most", "sizes"), [(10, 4, [3, 4, 3]), (4, 4, [4]), (5, 4, [2, 3]), (2, 1, [1, 1])]
)
def test_the_parts_of_a_stack_are_about_equal(count: int, most: int, sizes: list[int]) -> None:
    parts = list(evenly_cut(list(range(count)), most))
    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == list(range(count))
