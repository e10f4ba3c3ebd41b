"""Tiny federations for the contract that every method keeps, and ways to look inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.engine.federation import Federation, combination
from bench.engine.hosts.base import Host, Hosts
from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from bench.engine.problem import Problem
from bench.models.base import seeded_model
from bench.suite.methods import METHODS, WRAPPERS
from kit.contract_models import MODELS
from methods.base import Batch, Batches, Exchange, FedAlgorithm, Message, Reply, State, Task
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Optimiser
from methods.core.optional import FoldsReplies, MakesSamples
from methods.core.random import generator
from methods.core.task import initial_tree

SIZES = (7, 12, 5)
"""Samples per client: with batches of 4 their last ones are uneven, and so are the numbers of steps."""
BATCH = 4
NORM_BATCH = 5
"""Leaves no batch of one sample, which batch norm cannot take."""
CLASSES = 3
PLAIN = SGD(lr=0.1)
QUICK = {"server_steps": 3, "samples_per_class": 6}
"""Hyperparameters that only make a method take longer, where it has them."""
INNER = ("fedavg", "scaffold", "moon")
"""With and without private state: a wrapper is tested around the first two of these that it accepts."""


def accepts(wrapper: str, inner: str) -> bool:
    try:
        METHODS.load(f"{wrapper}+{inner}")()
    except ValueError:
        return False
    return True


def wrapped() -> list[str]:
    return [
        f"{wrapper}+{inner}"
        for wrapper in WRAPPERS.names()
        for inner in [inner for inner in INNER if accepts(wrapper, inner)][:2]
    ]


every_method = pytest.mark.parametrize("name", [*METHODS.names(), *wrapped()])
"""Tests a new method without a line being written, but for its row in TRAFFIC (test_traffic.py)."""
in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def make_method(name: str, **hyperparameters: Any) -> FedAlgorithm:
    return METHODS.load(name)(**quick(name) | hyperparameters)


def quick(name: str) -> dict[str, Any]:
    return {key: value for key, value in QUICK.items() if key in METHODS.load(name).model_fields}


def tiny_problem(
    method: FedAlgorithm,
    model: str | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    optimiser: Optimiser = PLAIN,
    epochs: int = 2,
    batch_size: int = BATCH,
    seed: int = 0,
) -> Problem:
    """Clients 0, 1, … with so many samples each; by default on the first tiny model that the method accepts.

    With a model or an optimiser that the method refuses, the test is skipped.
    """
    if model is None:
        model = accepted_model(method)
    task = tiny_task(model, optimiser, len(sizes), seed)
    try:
        method.check(task)
    except ValueError as refusal:
        pytest.skip(f"{method.label} {refusal}")
    shape = MODELS[model].shape
    train = {client: samples(size, shape, "train", client) for client, size in enumerate(sizes)}
    if method.pools_data:
        train = {0: Samples(*(torch.cat(part) for part in zip(*train.values(), strict=True)))}
    return Problem(
        task=task,
        method=method,
        epochs=epochs,
        batch_size=batch_size,
        train=train,
        validation={client: samples(3, shape, "validation", client) for client in train},
        test={"near": samples(20, shape, "near"), "far": samples(15, shape, "far")},
        own_test={client: {"near": torch.arange(client, 12), "far": torch.arange(5)} for client in train},
    )


def accepted_model(method: FedAlgorithm) -> str:
    """The first tiny model on which the method runs with plain SGD."""
    refusals = []
    for model in MODELS:
        try:
            method.check(tiny_task(model, PLAIN, len(SIZES), 0))
        except ValueError as refusal:
            refusals.append(f"{model}: {refusal}")
        else:
            return model
    pytest.fail(
        f"{method.label} refuses every tiny model ({'; '.join(refusals)}): "
        "add one that it accepts to MODELS in tests/contract_models.py"
    )


def tiny_task(model: str, optimiser: Optimiser, clients: int, seed: int) -> Task:
    spec, shape = MODELS[model]
    built = seeded_model(spec, shape, CLASSES, seed)
    return Task(built, initial_tree(built), CLASSES, clients, optimiser, seed, input_shape=shape)


def samples(count: int, shape: tuple[int, ...], *key: str | int) -> Samples:
    """Noise around one point a class; the smallest client has none of the last class."""
    draw = generator(0, "/".join(map(str, key)))
    y = torch.arange(count) % (2 if count == SIZES[-1] else CLASSES)
    middles = torch.randn(CLASSES, *shape, generator=generator(0, "middles"))
    return Samples(middles[y] + 0.5 * torch.randn(count, *shape, generator=draw), y)


def run(
    problem: Problem, hosts: Hosts, rounds: int, participation: float = 1.0, save_to: Path | None = None
) -> Federation:
    """A federation after its prelude and so many rounds."""
    federation = Federation(problem, hosts, participation)
    if federation.has_prelude:
        federation.prelude()
    for _ in range(rounds):
        federation.advance()
    if save_to is not None:
        save_to.mkdir(exist_ok=True)
        federation.save(save_to)
    return federation


def resumed(
    problem: Problem, hosts: Hosts, folder: Path, rounds: int, participation: float = 1.0
) -> Federation:
    """A new federation that takes up what another has saved after so many rounds."""
    federation = Federation(problem, hosts, participation)
    federation.load(folder, rounds)
    return federation


@dataclass(frozen=True)
class Work:
    """One client's work in one exchange: what went in, what came out, and copies of it made at the time."""

    state: State
    message: Message
    batches: list[Batch]
    reply: Message
    kept: State
    copies: dict[str, Any]

    @property
    def edited(self) -> list[str]:
        """What has been changed in place since."""
        return differing(self.copies, {name: getattr(self, name) for name in self.copies})


@dataclass(frozen=True)
class WatchedProblem(Problem):
    """Notes all local work, and may disturb the private state that goes into it."""

    disturb: Callable[[State], State] = lambda state: state
    work: list[Work] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Problem, disturb: Callable[[State], State] = lambda state: state) -> WatchedProblem:
        return cls(**{each.name: getattr(problem, each.name) for each in fields(problem)}, disturb=disturb)

    def exchanges(self) -> list[Exchange | FoldsReplies]:
        return [Watched(exchange, self) for exchange in super().exchanges()]


class Watched:
    """An exchange that notes the clients' work and is otherwise the one inside."""

    def __init__(self, exchange: Exchange | FoldsReplies, problem: WatchedProblem) -> None:
        self._exchange, self._problem = exchange, problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exchange, name)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        client = self._problem.disturb(client)
        given = copied({"state": client, "message": message})
        reply, kept = self._exchange.local(task, client, message, batches)
        copies = given | copied({"reply": reply, "kept": kept})
        self._problem.work.append(Work(client, message, list(batches), reply, kept, copies))
        return reply, kept


def after(exchange: Exchange | FoldsReplies, task: Task, server: State, replies: Sequence[Reply]) -> State:
    """The server's state at the end of an exchange in which these replies came in."""
    server = combination(exchange)(task, server, replies)
    return exchange.finish(task, server) if isinstance(exchange, FoldsReplies) else server


def with_only(problem: Problem, clients: Sequence[int]) -> Problem:
    """The same problem without the other clients' data; ids and random streams stay."""
    return replace(problem, train={client: problem.train[client] for client in clients})


def with_infinite_inputs(problem: Problem, client: int) -> Problem:
    """One sample of the client is infinite in every feature."""
    x, y = problem.train[client]
    x = x.clone()
    x[0] = float("inf")
    return replace(problem, train={**problem.train, client: Samples(x, y)})


def standing(federation: Federation, host: Host) -> dict[str, Any]:
    """All that a run has come to: the server's state and every client's."""
    return {
        "server": federation.server,
        "clients": {str(client): host.state(client) for client in federation.problem.train},
    }


def flat(nest: Any, name: str = "") -> dict[str, Tensor]:
    """Dotted names to tensors."""
    if isinstance(nest, Tensor):
        return {name: nest}
    if isinstance(nest, Mapping):
        return {
            key: leaf
            for part, item in nest.items()
            for key, leaf in flat(item, f"{name}.{part}" if name else str(part)).items()
        }
    return {name: torch.tensor(nest)}


def differing(one: Any, other: Any) -> list[str]:
    """The names under which two nests do not hold the same bits."""
    first, second = flat(one), flat(other)
    return [
        name
        for name in first | second
        if name not in first or name not in second or not torch.equal(first[name], second[name])
    ]


def assert_close(one: Any, other: Any, tolerance: float) -> None:
    first, second = flat(one), flat(other)
    assert first.keys() == second.keys()
    gaps = {name: float((leaf.double() - second[name].double()).abs().max()) for name, leaf in first.items()}
    assert {name: gap for name, gap in gaps.items() if not gap <= tolerance} == {}


def is_all_finite(nest: Any) -> bool:
    return all(bool(torch.isfinite(leaf).all()) for leaf in flat(nest).values())


def each_tensor(nest: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(nest, Tensor):
        return function(nest)
    return type(nest)({key: each_tensor(item, function) for key, item in nest.items()})


def copied(nest: Any) -> Any:
    return each_tensor(nest, torch.clone)


def noisy(nest: Any, draw: torch.Generator) -> Any:
    """A copy whose floats are all a little larger, each by another amount."""

    def add_noise(leaf: Tensor) -> Tensor:
        noise = 0.01 * torch.rand(leaf.shape, generator=draw)
        return leaf + noise.to(leaf.dtype) if leaf.is_floating_point() else leaf.clone()

    return each_tensor(nest, add_noise)


def predictions(federation: Federation, host: Host) -> Tensor:
    """The scores for all test samples: the global model's, or where there is none, the first client's."""
    problem = federation.problem
    state = None if problem.method.has_global_model else host.state(min(problem.train))
    with torch.no_grad():
        scores = [
            problem.method.predict(problem.task, federation.server, state, x)
            for x, _ in problem.test.values()
        ]
    return torch.cat(scores)


def serves_a_model(method: FedAlgorithm) -> FedAlgorithm:
    """The method, or a skip if its server keeps no model."""
    if "model" not in served(method.server(tiny_problem(method).task)):
        pytest.skip("the server has no model")
    return method


def served(server: State) -> State:
    """The server's state, or with a wrapper that of the method inside."""
    return server.get("inner", server)


def makes_samples(method: FedAlgorithm) -> bool:
    return isinstance(method, MakesSamples)
