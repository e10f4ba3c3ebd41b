"""Every registered method competes on equal terms, and is FedAvg where it says so."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from bench.engine.hosts.base import Host
from bench.engine.hosts.loop import LoopHost
from bench.errors import UserError
from bench.suite.methods import METHODS
from bench.validation import validated
from kit.contract import (
    WatchedProblem,
    accepted_model,
    assert_close,
    differing,
    every_method,
    in_one_process,
    make_method,
    makes_samples,
    noisy,
    run,
    served,
    serves_a_model,
    standing,
    tiny_problem,
)
from kit.contract_cells import NEED_CLIP, accepted_cell_model, assembled, cell_config, needs_vectors
from methods.base import Batches, FedAlgorithm, Message, State, Task, Tree
from methods.core.optimisers import SGD
from methods.fedavg import FedAvg

# FedAvg as a special case


@every_method
def test_is_fedavg_at_its_neutral_hyperparameters(name: str) -> None:
    neutral = METHODS.load(name).neutral
    if isinstance(neutral, str):
        pytest.skip(neutral)
    method = make_method(name, **neutral)
    model = accepted_model(method)
    ends = []
    for each in (method, FedAvg()):
        problem = tiny_problem(each, model)
        ends.append(served(run(problem, LoopHost(problem), rounds=2).server)["model"])
    assert differing(*ends) == []


# Hyperparameters


@every_method
def test_an_unknown_hyperparameter_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="unknown key 'no_such_thing'"):
        validated(METHODS.load(name), {"no_such_thing": 1}, f"method '{name}'")


@every_method
def test_hyperparameters_beyond_their_bounds_are_refused(name: str) -> None:
    kind = METHODS.load(name)
    wrong: list[tuple[str, Any]] = [("weighting", "at random")] if "weighting" in kind.model_fields else []
    for key, schema in kind.model_json_schema()["properties"].items():
        for part in (schema, *schema.get("anyOf", ())):
            wrong += [(key, part["minimum"] - 1)] if "minimum" in part else []
            wrong += [(key, part["maximum"] + 1)] if "maximum" in part else []
            wrong += [(key, part[end]) for end in ("exclusiveMinimum", "exclusiveMaximum") if end in part]
            wrong += [(key, float("nan")), (key, float("inf"))] if part.get("type") == "number" else []
    for key, value in wrong:
        with pytest.raises(UserError, match=f"{key} = "):
            validated(kind, {key: value}, f"method '{name}'")


# Clients start from what the server sends


@every_method
def test_every_message_carries_the_current_model_of_the_server(name: str) -> None:
    problem = WatchedProblem.of(tiny_problem(serves_a_model(make_method(name))))
    federation = run(problem, LoopHost(problem), rounds=0, participation=0.7)
    for _ in range(3):
        current = served(federation.server)["model"]
        problem.work.clear()
        federation.advance()
        assert len(problem.work) == 2
        for work in problem.work:
            assert differing(work.message["model"], current) == []
        assert differing(served(federation.server)["model"], current)


@every_method
def test_clients_start_from_the_model_they_are_sent(name: str) -> None:
    sent, returned = exchange_with_vanishing_steps(serves_a_model(make_method(name)))
    assert_close(sent, returned, tolerance=1e-5)


def exchange_with_vanishing_steps(method: FedAlgorithm) -> tuple[Tree, Tree]:
    """A model that no client has seen, and what the server makes of it when nobody learns anything."""
    problem = tiny_problem(method, optimiser=SGD(lr=1e-12))
    host = LoopHost(problem)
    federation = run(problem, host, rounds=1)
    sent = noisy(served(federation.server)["model"], torch.Generator().manual_seed(1))
    server = {**federation.server, "model": sent}
    if "inner" in server:
        server["inner"] = {**server["inner"], "model": sent}
    task, last = problem.task, len(problem.exchanges()) - 1
    messages = [(client, method.down(task, server, client)) for client in problem.train]
    return sent, served(method.aggregate(task, server, host.run(last, 2, messages)))["model"]


class _OwnStart(FedAvg):
    """Clients go on from where they stopped, whatever the server sends."""

    label: ClassVar[str] = "Own start"

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, client, batches)
        return reply, {"model": reply["model"]}


def test_clients_that_start_from_their_own_model_are_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_close(*exchange_with_vanishing_steps(_OwnStart()), tolerance=1e-5)


# Random numbers


@every_method
def test_initial_weights_depend_on_the_seed_alone(name: str) -> None:
    if name in NEED_CLIP:
        pytest.skip("needs the weights of a CLIP model")
    model = accepted_cell_model(name)
    embedded = needs_vectors(name, model)
    one, other = (assembled(cell_config(each, model, embedded=embedded)) for each in (name, "fedavg"))
    assert differing(one.problem.task.initial, other.problem.task.initial) == []
    assert one.fingerprints == other.fingerprints
    method, task = one.problem.method, one.problem.task
    for state in (method.server(task), method.client(task)):
        if "model" in state:
            assert differing(state["model"], other.problem.task.initial.only(state["model"])) == []
    changed = assembled(cell_config(name, model, seed=1))
    assert changed.fingerprints.initial_weights != one.fingerprints.initial_weights
    assert differing(changed.problem.task.initial, one.problem.task.initial)


@every_method
def test_clients_and_batches_are_the_same_for_every_method(name: str) -> None:
    method = make_method(name)
    if method.pools_data:
        pytest.skip("has one client only")
    if makes_samples(method):
        pytest.skip("makes samples of its own")
    model = accepted_model(method)
    seen = []
    for each in (method, FedAvg()):
        problem = WatchedProblem.of(tiny_problem(each, model))
        federation = run(problem, LoopHost(problem), rounds=0, participation=0.7)
        problem.work.clear()
        for _ in range(3):
            federation.advance()
        batches = [batch for work in problem.work for batch in work.batches]
        seen.append({str(at): {"x": batch.x, "y": batch.y} for at, batch in enumerate(batches)})
    assert seen[0]
    assert differing(*seen) == []


@every_method
@in_one_process
def test_global_random_numbers_are_neither_used_nor_changed(name: str, kind: type[Host]) -> None:
    def ends() -> dict[str, Any]:
        problem = tiny_problem(make_method(name))
        host = kind(problem)
        federation = run(problem, host, rounds=2, participation=0.7)
        federation.evaluate(personal=True)
        return standing(federation, host)

    torch.manual_seed(1)
    first = ends()
    torch.manual_seed(2)
    np.random.seed(2)
    random.seed(2)
    before = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    second = ends()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (repr(np.random.get_state()), random.getstate()) == before[1:]
    assert differing(first, second) == []
