"""Exchanges before round 1 that cells share: computed once, with the results of computing them for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from bench.contract.nests import gaps
from bench.contract.runs import prepared, standing
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.shared_preludes import SharedPreludes
from methods.base import Batches, FedAlgorithm, Message, Prelude, Reply, State, Task
from methods.core.optimisers import SGD
from methods.fedavg import FedAvg
from methods.wrappers.ggeur import GGEUR, exchanges
from tests.kit.contract import make_method, tiny_problem


@dataclass(frozen=True)
class Sums:
    """Clients send and keep a multiple of the sum of their inputs."""

    factor: float

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        calls.append(self.factor)
        total = self.factor * torch.stack([batch.x.sum() for batch in batches.once()]).sum()
        return {"total": total}, {"total": total}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server | {"total": torch.stack([reply.content["total"] for reply in replies]).sum()}


class OwnSums(Sums):
    """The same, equal to itself alone."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class WithSums(FedAvg):
    factor: float = 1.0
    start: float = 0.0
    alone: bool = False

    def server(self, task: Task) -> State:
        return super().server(task) | {"start": torch.tensor(self.start)}

    def prelude(self, task: Task) -> Prelude:
        return [OwnSums(self.factor) if self.alone else Sums(self.factor)]


calls: list[float] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


def cells_of(*methods: FedAlgorithm) -> list[tuple[StackedHost, Federation]]:
    """Cells with the same data, and learning rates of their own, after their preludes."""
    problem = tiny_problem(methods[0])
    shared = SharedPreludes()
    found = []
    for position, method in enumerate(methods):
        task = replace(problem.task, optimiser=SGD(lr=0.01 * (1 + position)))
        host = StackedHost(replace(problem, method=method, task=task))
        found.append((host, prepared(host.problem, host, shared=shared)))
    return found


def test_equal_exchanges_are_computed_once() -> None:
    cells = cells_of(WithSums(), WithSums(), WithSums())
    assert len(calls) == 3  # clients of one cell
    for host, federation in cells:
        alone = StackedHost(host.problem)
        assert not gaps(standing(prepared(host.problem, alone), alone), standing(federation, host), 0)
        assert federation.server["total"] is cells[0][1].server["total"]


@pytest.mark.parametrize(
    "other",
    [WithSums(factor=2.0), WithSums(start=1.0), WithSums(alone=True)],
    ids=lambda method: repr(method),
)
def test_what_is_not_equal_is_computed_for_every_cell(other: WithSums) -> None:
    first = WithSums(alone=other.alone)
    (_, one), (host, two) = cells_of(first, other)
    assert len(calls) == 6
    assert float(two.server["total"]) == pytest.approx(other.factor * float(one.server["total"]))
    alone = StackedHost(host.problem)
    assert not gaps(standing(prepared(host.problem, alone), alone), standing(two, host), 0)


def test_cells_with_other_samples_share_nothing() -> None:
    shared = SharedPreludes()
    for seed in (0, 1):
        problem = tiny_problem(WithSums(), seed=seed)
        prepared(problem, StackedHost(problem), shared=shared)
    assert len(calls) == 6


def test_the_record_of_a_shared_exchange_has_its_bytes() -> None:
    problem = tiny_problem(WithSums())
    shared = SharedPreludes()
    records = [Federation(problem, StackedHost(problem)).prelude(shared) for _ in range(2)]
    assert records[0] == records[1]
    assert records[0]["bytes_up"] == 3 * 4


def test_ggeur_takes_its_statistics_once_whatever_is_done_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = exchanges.moments

    def counted(*inputs: Any) -> Any:
        taken.append(1)
        return real(*inputs)

    monkeypatch.setattr(exchanges, "moments", counted)
    first = make_method("ggeur+fedavg")
    others = [
        first.model_copy(update=changes)
        for changes in (
            {"samples_per_class": 7},
            {"noise_scale": "linear"},
            {"top_k": 2},
            {"step2_samples": 3},
        )
    ]
    problem = tiny_problem(first)
    shared = SharedPreludes()
    for method in [first, *others]:
        host = StackedHost(replace(problem, method=method))
        before = len(taken)
        federation = prepared(host.problem, host, shared=shared)
        assert len(taken) - before == (len(problem.train) if method is first else 0)
        alone = StackedHost(host.problem)
        assert not gaps(standing(prepared(host.problem, alone), alone), standing(federation, host), 0)
        del taken[before + (len(problem.train) if method is first else 0) :]


def test_cells_that_share_their_statistics_and_make_the_same_samples_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = [host for host, _ in cells_of(*[make_method("ggeur+fedavg")] * 2)]
    monkeypatch.setattr(GGEUR, "training_samples", None)  # there is no need to make any
    assert hosts[0].makes_the_same(hosts[1])
