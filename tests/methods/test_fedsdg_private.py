"""What FedSDG sends, what stays with a client, and which of both a prediction uses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.engine.checkpoints import load_state
from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from methods.core.optimisers import Adam
from methods.fedsdg import GATES, FedSDG
from tests.kit.contract import (
    differing,
    resumed,
    run,
    tiny_problem,
)

ADAM = Adam(lr=1e-3, clip_norm=1.0)
in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


@in_one_process
def test_private_state_outlives_rounds_without_the_client_and_a_restart(
    kind: type[Host], tmp_path: Path
) -> None:
    problem = tiny_problem(FedSDG(), optimiser=ADAM)
    host = kind(problem)
    federation = Federation(problem, host, participation=0.4)
    states: dict[int, Any] = {client: host.state(client) for client in problem.train}
    for number in range(1, 7):
        took_part = federation.participants(number)
        federation.advance()
        for client in problem.train:
            changed = bool(differing(host.state(client), states[client]))
            assert changed == (client in took_part)
        states = {client: host.state(client) for client in problem.train}
    federation.save(tmp_path)
    other = kind(problem)
    resumed(problem, other, tmp_path, rounds=6, participation=0.4)
    assert differing({str(k): other.state(k) for k in states}, {str(k): states[k] for k in states}) == []


def test_a_checkpoint_holds_no_frozen_weights(tmp_path: Path) -> None:
    problem = tiny_problem(FedSDG(), optimiser=ADAM)
    run(problem, LoopHost(problem), rounds=1, save_to=tmp_path)
    server = load_state(tmp_path / "server.pt")
    assert set(server["model"]) == set(problem.task.initial)
    for client in load_state(tmp_path / "clients-0.pt").values():
        assert set(client) == {"private", GATES}
        assert all(".private." in name for name in client["private"])


def test_personal_accuracy_is_that_of_the_clients_own_models() -> None:
    problem = tiny_problem(FedSDG(private_lr=0.1, gate_lr=0.1), optimiser=ADAM)
    host = LoopHost(problem)
    federation = run(problem, host, rounds=3)
    scores = federation.evaluate(personal=True)
    expected = []
    for client, places in problem.own_test.items():
        hits = [
            problem.method.predict(
                problem.task, federation.server, host.state(client), problem.test[name].x[at]
            )
            .argmax(dim=1)
            .eq(problem.test[name].y[at])
            for name, at in places.items()
        ]
        expected.append(float(torch.cat(hits).float().mean()))
    assert scores["personal"] == pytest.approx(np.mean(expected))
    assert scores["test"] == federation.evaluate(personal=False)["test"]
