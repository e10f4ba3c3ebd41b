"""Servers of several cells that take in their clients' replies at once: the states of each by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.contract.nests import gaps
from bench.contract.rules.sweeps import two_settings
from bench.engine.federation import Federation
from bench.engine.hosts.base import Asked, Combining
from bench.engine.hosts.combining import combined_together, joint_combining
from bench.engine.hosts.groups import HostGroups
from bench.engine.hosts.replies import Replies, StackedReplies
from bench.engine.hosts.stacked import StackedHost
from bench.engine.hosts.together import Share, train_together
from methods.core.tree import size_in_bytes
from methods.fedavg import FedAvg
from tests.kit.contract import make_method, tiny_problem
from tests.kit.contract_traffic import SHIPPED


def requests_of(name: str, rounds: int = 1) -> list[Combining]:
    """What the servers of two settings ask for at the end of a round whose clients were one stack."""
    problem = tiny_problem(make_method(name))
    cells = []
    for each in two_settings(problem):
        host = StackedHost(each)
        federation = Federation(host.problem, host)
        if federation.has_prelude:
            federation.prelude()
        for _ in range(rounds - 1):
            federation.advance()
        cells.append((host, federation))
    last = len(problem.exchanges()) - 1
    shares, asking = [], []
    for host, federation in cells:
        round_ = federation.advancing()
        asked = next(round_)
        assert isinstance(asked, Asked)
        assert asked.phase == last
        shares.append(Share(host, dict(asked.messages)))
        asking.append(round_)
    found: list[Combining] = []
    for round_, replies in zip(asking, train_together(rounds, [shares])[0], strict=True):
        request = round_.send(replies)
        assert isinstance(request, Combining)
        found.append(request)
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_servers_come_to_the_same_states_together_as_alone(name: str) -> None:
    try:
        requests = requests_of(name, rounds=2)
    except Exception:
        pytest.skip("its clients cannot be computed together")
    for request, found in zip(requests, joint_combining().to(requests), strict=True):
        assert not isinstance(found, Exception)
        assert not gaps(request.alone(), found, 1e-6)


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "scaffold", "feddyn", "fedadam", "fedyogi", "moon"])
def test_servers_that_average_are_stacked(name: str) -> None:
    requests = requests_of(name)
    for request, found in zip(requests, combined_together(requests), strict=True):
        assert not gaps(request.alone(), found, 1e-6)


def test_what_a_server_keeps_stays_the_same_object() -> None:
    class Keeping(FedAvg):
        def aggregate(self, task: Any, server: Any, replies: Any) -> Any:
            return server | super().aggregate(task, server, replies) | {"number": torch.tensor(3.0)}

    requests = [
        request._replace(
            problem=replace(request.problem, method=Keeping()),
            server=request.server | {"large": torch.full((4,), float(cell))},
        )
        for cell, request in enumerate(requests_of("fedavg"))
    ]
    for request, found in zip(requests, combined_together(requests), strict=True):
        assert found["large"] is request.server["large"]
        assert float(found["number"]) == 3


def test_a_server_that_decides_by_numbers_of_its_replies_is_left_alone() -> None:
    class Deciding(FedAvg):
        def aggregate(self, task: Any, server: Any, replies: Any) -> Any:
            model = self.average(replies)
            return {"model": model if float(model.sqnorm()) > 0 else server["model"]}

    requests = requests_of("fedavg")
    requests = [each._replace(combine=Deciding().aggregate) for each in requests]
    requests = [each._replace(problem=replace(each.problem, method=Deciding())) for each in requests]
    joint = joint_combining()
    for request, found in zip(requests, joint.to(requests), strict=True):
        assert not isinstance(found, Exception)
        assert not gaps(request.alone(), found, 0)
    assert not joint.works


def test_a_server_that_fails_fails_alone() -> None:
    first, second = requests_of("fedavg")
    broken = second._replace(server={}, replies=Replies([]))
    found = joint_combining().to([first, broken])
    assert isinstance(found[1], Exception)
    assert not gaps(first.alone(), found[0], 0)


def test_replies_of_a_stack_have_the_bytes_and_numbers_of_plain_ones() -> None:
    for request in requests_of("scaffold"):
        replies = request.replies
        assert isinstance(replies, StackedReplies)
        assert replies.size_in_bytes() == sum(size_in_bytes(reply.content) for reply in replies)
        assert [reply.client for reply in replies] == sorted(request.problem.train)
        assert len(replies) == len(list(replies)) == len(request.problem.train)


def test_steps_of_a_stack_leave_what_was_sent_as_it_was() -> None:
    problem = replace(tiny_problem(FedAvg()), epochs=3)
    hosts = [StackedHost(each) for each in two_settings(problem)]
    before = {name: leaf.clone() for name, leaf in problem.task.initial.items()}
    groups = HostGroups()
    federations = [Federation(host.problem, host) for host in hosts]
    for _ in range(2):
        servers = [federation.server["model"] for federation in federations]
        copies = [{name: leaf.clone() for name, leaf in model.items()} for model in servers]
        assert not groups.advance(
            {host: each.advancing() for host, each in zip(hosts, federations, strict=True)}
        )
        for model, copy in zip(servers, copies, strict=True):
            assert all(torch.equal(model[name], copy[name]) for name in copy)
    assert all(torch.equal(problem.task.initial[name], before[name]) for name in before)
