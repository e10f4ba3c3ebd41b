"""A wrapper passes on everything that the method inside it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
import torch
from torch import Generator, Tensor

from bench.contract.runs import standing
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.suite.methods import METHODS
from methods.base import Batch, Batches, FedAlgorithm, Message, Prelude, Reply, Samples, State, Task
from methods.core.optimisers import SGD, Adam
from methods.core.optional import FoldsReplies, MakesSamples
from methods.fedavg import FedAvg
from methods.fedetf import FedETF
from methods.fedlsa import FedLSA
from methods.fedproto import FedProto
from methods.fedproto_avg import FedProtoAvg
from methods.fedprox import FedProx
from methods.fedsdg import FedSDG
from methods.fedsr import FedSR
from methods.moon import Moon
from methods.shared.averaging import Averaging
from methods.wrappers.base import Wrapper
from tests.kit.contract import differing, run, tiny_problem


class Plain(Wrapper):
    """Goes around a method and changes nothing."""

    short_label = "Plain"
    neutral: ClassVar[Mapping[str, Any] | str] = {}


def around(kind: type[FedAlgorithm], **chosen: Any) -> Plain:
    """The wrapper around a method of this kind, which has its defaults."""
    return Plain.around(kind).model_validate(chosen)


class Folding:
    """Adds up the clients' numbers of samples, one reply at a time."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        return {"samples": torch.tensor(batches.samples)}, {"told": torch.tensor(True)}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        return server | {"samples": server["samples"] + reply.content["samples"]}

    def finish(self, task: Task, server: State) -> State:
        return server | {"finished": torch.tensor(True)}


class Everything(Averaging):
    """Has every optional part of the interface."""

    label = "Everything"
    neutral = "doubles its samples"
    observes_clients = True
    sample_state = frozenset({"told"})

    optimiser: SGD | Adam | None = SGD(lr=0.07)

    def server(self, task: Task) -> State:
        return super().server(task) | {"samples": torch.tensor(0), "finished": torch.tensor(False)}

    def client(self, task: Task) -> State:
        return {"rounds": torch.tensor(0.0), "told": torch.tensor(False)}

    def prelude(self, task: Task) -> Prelude:
        return [Folding()]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return reply, {"rounds": client["rounds"] + 1}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server | {"model": self.average(replies)}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        if client is None:
            return {"samples": float(server["samples"])}
        return {"rounds": float(client["rounds"])}

    def training_samples(self, task: Task, client: State, own: Samples, draw: Generator) -> Samples:
        copies = 2 if bool(client["told"]) else 1
        return Samples(own.x.repeat(copies, 1), own.y.repeat(copies))

    def resamples(self) -> bool:
        return True

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        return task.encode(server["model"], x), server["model"]["classifier.weight"]

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        return {"uniform": self.model_copy(update={"weighting": "uniform"})}


@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
@pytest.mark.parametrize("inner", [Everything(), Moon(), FedProto()], ids=lambda each: each.label)
def test_nothing_is_lost_or_changed_on_the_way(inner: FedAlgorithm, kind: type[Host]) -> None:
    """The same states, records and accuracies with a wrapper that does nothing as without."""
    endings, records = [], []
    for method in (inner, around(type(inner), inner=inner)):
        problem = tiny_problem(method)
        host = kind(problem)
        federation = run(problem, host, rounds=2)
        records.append([federation.advance(), federation.evaluate(personal=True)])
        ending = standing(federation, host)
        endings.append({"server": served(ending["server"]), "clients": own(ending["clients"])})
    assert records[0] == records[1]
    assert differing(*endings) == []


def served(server: State) -> State:
    inner: State = server.get("inner", server)
    return inner


def own(clients: State) -> State:
    return {client: state.get("inner", state) for client, state in clients.items()}


@pytest.mark.parametrize("inner", [FedSDG, Everything])
def test_figures_about_clients_are_recorded(inner: type[FedAlgorithm]) -> None:
    metrics = []
    for method in (inner(), around(inner)):
        problem = tiny_problem(method)
        metrics.append(run(problem, LoopHost(problem), rounds=1).advance()["metrics"])
    assert metrics[0] == metrics[1]
    assert {"gate_mean", "rounds"} & set(metrics[1])


@pytest.mark.parametrize(
    ("inner", "offered"),
    [
        (Everything, (True, True, True)),
        (FedLSA, (False, True, False)),
        (FedProto, (False, False, True)),
        (FedProtoAvg, (False, True, True)),
        (Moon, (False, False, False)),
    ],
)
def test_a_wrapped_method_offers_just_what_the_method_offers(
    inner: type[FedAlgorithm], offered: tuple[bool, bool, bool]
) -> None:
    """Own samples, anchors, other predictions."""
    for method in (inner(), around(inner), around(Plain.around(inner))):
        problem = tiny_problem(method)
        server = run(problem, LoopHost(problem), rounds=1).server
        has_anchors = method.anchored(problem.task, server, problem.test["near"].x) is not None
        assert (isinstance(method, MakesSamples), has_anchors, bool(method.other_predictions())) == offered


def test_rounds_do_not_get_what_the_inner_method_keeps_for_samples() -> None:
    wrapped = around(Plain.around(Everything))
    assert wrapped.sample_state == {"inner.inner.told"}
    host = StackedHost(tiny_problem(wrapped))
    inside = {"rounds": torch.tensor(1.0), "told": torch.tensor(True)}
    host.adopt({0: {"told": inside["told"], "inner": {"inner": inside}}})
    expected = {"told": inside["told"], "inner": {"inner": {"rounds": inside["rounds"]}}}
    assert host.seen_in_rounds(0) == expected


@pytest.mark.parametrize("inner", [FedAvg, FedLSA, FedETF, FedSR])
def test_a_wrapped_method_is_stacked_as_far_as_both_are(inner: type[FedAlgorithm]) -> None:
    class Restricted(Plain):
        stacks_server = stacks_predictions = False
        reads_seed = True

    flags = ("stacks_server", "stacks_predictions", "reads_seed")
    for flag in flags:
        assert getattr(Plain.around(inner), flag) == getattr(inner, flag)
        assert getattr(Restricted.around(inner), flag) == getattr(Restricted, flag)


def test_anchors_and_other_predictions_are_the_inner_methods() -> None:
    inner, wrapped = Everything(), around(Everything)
    problem = tiny_problem(wrapped)
    task, x = problem.task, problem.test["near"].x
    one, other = wrapped.anchored(task, wrapped.server(task), x), inner.anchored(task, inner.server(task), x)
    assert one is not None and other is not None
    assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
    [(name, method)] = wrapped.other_predictions().items()
    assert isinstance(method, Wrapper) and name == "uniform"
    assert method.inner.weighting == "uniform"  # type: ignore[attr-defined]


def test_the_clients_optimiser_is_the_wrappers_or_else_the_inner_methods() -> None:
    assert around(Everything).client_optimiser == SGD(lr=0.07)
    assert around(Everything, optimiser=SGD(lr=0.5)).client_optimiser == SGD(lr=0.5)
    assert around(Plain.around(Everything)).client_optimiser == SGD(lr=0.07)


def test_an_exchange_that_folds_does_so_inside_a_wrapper() -> None:
    wrapped = around(Everything)
    problem = tiny_problem(wrapped)
    [exchange] = wrapped.prelude(problem.task)
    assert isinstance(exchange, FoldsReplies) and not hasattr(exchange, "aggregate")
    server = run(problem, LoopHost(problem), rounds=0).server["inner"]
    assert int(server["samples"]) == sum(len(y) for _, y in problem.train.values())
    assert bool(server["finished"])


def test_the_objective_is_the_inner_methods() -> None:
    wrapped = METHODS.load("ggeur+fedprox").model_validate({"inner": {"mu": 3.0}})
    problem = tiny_problem(wrapped)
    task, message = problem.task, {"model": problem.task.initial}
    batch, moved = Batch(*problem.train[0]), task.initial + 0.1
    losses = [method.objective(task, {}, message)(moved, batch) for method in (wrapped, FedProx(mu=3.0))]
    assert torch.equal(*losses)
    assert not torch.equal(losses[0], FedAvg().objective(task, {}, message)(moved, batch))
