"""A round of every registered method: it learns, sends tensors, edits nothing and survives a blow-up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.engine.federation import Federation
from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.engine.problem import Problem
from kit.contract import (
    BATCH,
    NORM_BATCH,
    WatchedProblem,
    assert_close,
    copied,
    differing,
    every_method,
    flat,
    in_one_process,
    is_all_finite,
    make_method,
    makes_samples,
    predictions,
    resumed,
    run,
    served,
    serves_a_model,
    standing,
    tiny_problem,
    with_infinite_inputs,
    with_only,
)
from methods.base import Batches, Exchange, FedAlgorithm, Message, Reply, State, Task, Tree
from methods.fedavg import FedAvg
from methods.wrappers.base import Wrapper

# One round


@every_method
@in_one_process
def test_a_round_changes_the_predictions_and_stays_finite(name: str, kind: type[Host]) -> None:
    problem = tiny_problem(make_method(name))
    host = kind(problem)
    federation = run(problem, host, rounds=0)
    before = predictions(federation, host)
    record = federation.advance()
    assert (record["round"], record["clients"], record["dropped"]) == (1, len(problem.train), 0)
    after = predictions(federation, host)
    assert is_all_finite(standing(federation, host))
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)


@every_method
def test_messages_and_private_state_are_named_tensors(name: str) -> None:
    """Anything else would travel uncounted and could not be stacked."""
    problem = WatchedProblem.of(tiny_problem(make_method(name)))
    run(problem, LoopHost(problem), rounds=2)
    for work in problem.work:
        assert [*foreign(work.message), *foreign(work.reply), *foreign(work.kept)] == []


def foreign(nest: Any) -> list[str]:
    """The types in a nest that are neither tensors nor mappings of them."""
    if isinstance(nest, (dict, Tree)):
        return [each for item in nest.values() for each in foreign(item)]
    return [] if isinstance(nest, Tensor) else [type(nest).__name__]


@every_method
@pytest.mark.parametrize(
    ("model", "batch_size"), [(None, BATCH), ("norm", NORM_BATCH)], ids=["usual", "norm"]
)
def test_nothing_is_edited_in_place(name: str, model: str | None, batch_size: int) -> None:
    problem = WatchedProblem.of(tiny_problem(make_method(name), model, batch_size=batch_size))
    assert edited_in_place(problem, LoopHost(problem)) == []


def edited_in_place(problem: WatchedProblem, host: Host) -> list[str]:
    """What two rounds and an evaluation change in states, messages and data that were there before."""
    federation = run(problem, host, rounds=0)
    held = {"initial": problem.task.initial, "data": data_of(problem), "0": federation.server}
    copies = copied(held)
    for number in ("1", "2"):
        federation.advance()
        held[number] = federation.server
        copies[number] = copied(federation.server)
    federation.evaluate(personal=True)
    return differing(held, copies) + [name for work in problem.work for name in work.edited]


def data_of(problem: Problem) -> dict[str, Any]:
    return {str(client): {"x": x, "y": y} for client, (x, y) in problem.train.items()}


class _InPlace(FedAvg):
    """Averages into the memory of the first reply."""

    label: ClassVar[str] = "In place"

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        for name, leaf in self.average(replies).items():
            replies[0].content["model"][name].copy_(leaf)
        return {"model": replies[0].content["model"]}


def test_an_edit_in_place_is_noticed() -> None:
    problem = WatchedProblem.of(tiny_problem(_InPlace()))
    assert edited_in_place(problem, LoopHost(problem))


@every_method
def test_batch_norm_is_averaged_but_for_its_counter(name: str) -> None:
    method = serves_a_model(make_method(name))
    if makes_samples(method):
        pytest.skip("makes samples of its own")
    problem = WatchedProblem.of(tiny_problem(method, "norm", batch_size=NORM_BATCH))
    server = run(problem, LoopHost(problem), rounds=1).server
    model = served(server)["model"]
    weights = [len(y) if unwrapped(method).weighting == "samples" else 1 for _, y in problem.train.values()]
    if "alignment" in server:
        weights = server["alignment"]["weights"].tolist()
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        replies = [work.copies["reply"] for work in problem.work[-len(problem.train) :]]
        sent = [reply["model"][buffer].double().numpy() for reply in replies]
        np.testing.assert_allclose(model[buffer], np.average(sent, axis=0, weights=weights), atol=1e-6)
    assert model["encoder.1.num_batches_tracked"].dtype == torch.int64


def unwrapped(method: FedAlgorithm) -> Any:
    return method.inner if isinstance(method, Wrapper) else method


class _WithPrelude(FedAvg):
    """Before round 1 the clients send their largest input, a single number; then they count their steps."""

    label: ClassVar[str] = "With prelude"

    def client(self, task: Task) -> State:
        return {"steps": torch.tensor(0), "share": torch.tensor(0.0)}

    def prelude(self, task: Task) -> Sequence[Exchange]:
        return [_LargestUp()]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return reply, client | {"steps": client["steps"] + batches.steps}


class _LargestUp:
    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        largest = torch.stack([batch.x.max() for batch in batches.once()]).max()
        return {"largest": largest}, client | {"share": largest / 2}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server | {"largest": torch.stack([reply.content["largest"] for reply in replies])}


@in_one_process
def test_a_prelude_comes_first_with_all_clients_and_single_numbers_can_travel(kind: type[Host]) -> None:
    problem = tiny_problem(_WithPrelude())
    host = kind(problem)
    federation = Federation(problem, host, participation=0.7)
    record = federation.prelude()
    assert record == {"round": 0, "bytes_up": 3 * 4, "bytes_down": 0, "clients": 3, "dropped": 0}
    largest = [float(x.max()) for x, _ in problem.train.values()]
    assert federation.server["largest"].tolist() == largest
    federation.advance()
    steps = {0: 2 * 2, 1: 2 * 3, 2: 2 * 2}  # epochs × batches of four
    for client in problem.train:
        took = steps[client] if client in federation.participants(1) else 0
        assert int(host.state(client)["steps"]) == took
        assert float(host.state(client)["share"]) == largest[client] / 2


# A client that blows up


@every_method
@in_one_process
def test_a_client_that_blows_up_is_left_out(name: str, kind: type[Host], tmp_path: Path) -> None:
    """The others get what they would without it, and it keeps the private state it had."""
    problem = tiny_problem(make_method(name))
    run(problem, kind(problem), rounds=1, save_to=tmp_path)
    before = kind(problem)
    before.load(tmp_path)
    bad = max(problem.train) // 2
    others = [client for client in problem.train if client != bad]

    host = kind(with_infinite_inputs(problem, bad))
    federation = resumed(host.problem, host, tmp_path, rounds=1)
    server_before = federation.server
    record = federation.advance()
    assert (record["clients"], record["dropped"]) == (len(problem.train), 1)
    assert is_all_finite(standing(federation, host))
    assert differing(host.state(bad), before.state(bad)) == []
    if not others:
        assert differing(federation.server, server_before) == []
        return
    fewer_host = kind(with_only(problem, others))
    fewer = resumed(fewer_host.problem, fewer_host, tmp_path, rounds=1)
    fewer.advance()
    tolerance = 0.0 if kind is LoopHost else 1e-6
    assert_close(federation.server, fewer.server, tolerance)
    for client in others:
        assert_close(host.state(client), fewer_host.state(client), tolerance)
        if flat(problem.method.client(problem.task)):
            assert differing(host.state(client), before.state(client))
