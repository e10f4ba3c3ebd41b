"""Servers of several cells that take in their clients' replies at once: the states of each by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.contract.nests import gaps
from bench.contract.rules.sweeps import two_settings
from bench.engine.asked import Asked, Round
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.stacking.call import train_together
from bench.engine.stacking.joint import JointRounds, StackError
from bench.engine.stacking.replies import StackedReplies
from bench.engine.stacking.servers import combined_together
from methods.base import FedAlgorithm
from methods.core.tree import size_in_bytes
from methods.fedavg import FedAvg
from tests.kit.contract import make_method, tiny_problem

DIFFERENT = ("fedavg", "fedadam", "fedfa", "scaffold", "feddyn", "fedproto", "ggeur+fedavg")
"""Servers that keep and average different things; the contract has all methods in stacks of cells."""


def requests_of(method: FedAlgorithm, rounds: int = 1) -> list[Asked]:
    """What the servers of two settings ask for at the end of a round whose clients were one stack."""
    cells: dict[StackedHost, Round] = {}
    for each in two_settings(tiny_problem(method)):
        host = StackedHost(each)
        federation = Federation(host.problem, host)
        if federation.has_prelude:
            federation.prelude()
        for _ in range(rounds - 1):
            federation.advance()
        cells[host] = federation.advancing()
    asked = {host: next(round_) for host, round_ in cells.items()}
    assert all(each.function == "local" for each in asked.values())
    (replies,) = train_together(rounds, [{host: each.given for host, each in asked.items()}])
    found = [round_.send(each) for round_, each in zip(cells.values(), replies, strict=True)]
    assert all(each.function == "aggregate" for each in found)
    return found


@pytest.mark.parametrize("name", DIFFERENT)
def test_servers_come_to_the_same_states_together_as_alone(name: str) -> None:
    method = make_method(name)
    assert method.stacks_server
    requests = requests_of(method, rounds=2)
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
        for cell, request in enumerate(requests_of(FedAvg()))
    ]
    for request, found in zip(requests, combined_together(requests), strict=True):
        assert found["large"] is request.server["large"]
        assert float(found["number"]) == 3


class Deciding(FedAvg):
    label = "Deciding"

    def aggregate(self, task: Any, server: Any, replies: Any) -> Any:
        model = self.average(replies)
        return {"model": model if float(model.sqnorm()) > 0 else server["model"]}


class DecidingCellByCell(Deciding):
    stacks_server = False


def advanced(method: FedAlgorithm) -> tuple[list[Exception], list[Federation]]:
    """A round of two cells together: what went wrong, and the cells."""
    hosts = [StackedHost(each) for each in two_settings(tiny_problem(method))]
    cells = {host: Federation(host.problem, host) for host in hosts}
    failed = JointRounds().advance({host: each.advancing() for host, each in cells.items()})
    return list(failed.values()), list(cells.values())


def test_a_server_that_decides_by_values_is_called_cell_by_cell_if_it_says_so() -> None:
    failed, cells = advanced(DecidingCellByCell())
    assert not failed
    assert [each.stacked_with for each in cells] == [2, 2]


def test_a_stack_that_cannot_be_computed_fails_with_the_reason() -> None:
    failed, _ = advanced(Deciding())
    assert [type(error) for error in failed] == [StackError, StackError]
    assert "aggregate of 2 cells could not be computed in one stack (RuntimeError: vmap:" in str(failed[0])


def test_replies_of_a_stack_have_the_bytes_and_numbers_of_plain_ones() -> None:
    for request in requests_of(make_method("scaffold")):
        replies = request.given
        assert isinstance(replies, StackedReplies)
        assert replies.size_in_bytes() == sum(size_in_bytes(reply.content) for reply in replies)
        assert [reply.client for reply in replies] == sorted(request.problem.train)
        assert len(replies) == len(list(replies)) == len(request.problem.train)


def test_steps_of_a_stack_leave_what_was_sent_as_it_was() -> None:
    problem = replace(tiny_problem(FedAvg()), epochs=3)
    hosts = [StackedHost(each) for each in two_settings(problem)]
    before = {name: leaf.clone() for name, leaf in problem.task.initial.items()}
    joint = JointRounds()
    federations = [Federation(host.problem, host) for host in hosts]
    for _ in range(2):
        servers = [federation.server["model"] for federation in federations]
        copies = [{name: leaf.clone() for name, leaf in model.items()} for model in servers]
        assert not joint.advance(
            {host: each.advancing() for host, each in zip(hosts, federations, strict=True)}
        )
        for model, copy in zip(servers, copies, strict=True):
            assert all(torch.equal(model[name], copy[name]) for name in copy)
    assert all(torch.equal(problem.task.initial[name], before[name]) for name in before)
