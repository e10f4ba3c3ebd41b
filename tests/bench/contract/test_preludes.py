"""Exchanges before round 1."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from bench.engine.clients.base import Host
from bench.engine.federation import Federation
from methods.base import Batches, Exchange, Message, Reply, State, Task
from methods.fedavg import FedAvg
from tests.kit.contract import in_one_process, tiny_problem


class _LargestInputs:
    """The clients send their largest input, a single number."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        largest = torch.stack([batch.x.max() for batch in batches.once()]).max()
        return {"largest": largest}, {"share": largest / 2}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return server | {"largest": torch.stack([reply.content["largest"] for reply in replies])}


class _WithPrelude(FedAvg):
    """After the exchange before round 1, clients count their steps."""

    label = "With prelude"

    def client(self, task: Task) -> State:
        return {"steps": torch.tensor(0), "share": torch.tensor(0.0)}

    def prelude(self, task: Task) -> list[Exchange]:
        return [_LargestInputs()]

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return reply, {"steps": client["steps"] + batches.steps}


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
        assert float(host.state(client)["share"]) == pytest.approx(largest[client] / 2)
