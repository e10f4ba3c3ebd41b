"""Short runs of a method, with everything noted that goes into a client's work and comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.contract.fixtures import with_only
from bench.contract.nests import copied, differing
from bench.engine.clients.base import Host, Hosts
from bench.engine.clients.loop import LoopHost
from bench.engine.evaluation import Scores
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.engine.shared_preludes import SharedPreludes
from methods.base import FedAlgorithm, Message, Reply, State

SOME = 0.7
"""Participation of two of the three clients."""


def prepared(
    problem: Problem, hosts: Hosts, participation: float = 1.0, shared: SharedPreludes | None = None
) -> Federation:
    """A federation after its exchanges before round 1, which it may share with other cells."""
    federation = Federation(problem, hosts, participation)
    if federation.has_prelude:
        federation.prelude(shared)
    return federation


def run(
    problem: Problem, hosts: Hosts, rounds: int, participation: float = 1.0, save_to: Path | None = None
) -> Federation:
    """A federation after so many rounds."""
    federation = prepared(problem, hosts, participation)
    for _ in range(rounds):
        federation.advance()
    if save_to is not None:
        save_to.mkdir(exist_ok=True)
        federation.save(save_to)
    return federation


def resumed(
    problem: Problem, hosts: Hosts, folder: Path, rounds: int, participation: float = 1.0
) -> Federation:
    """A new federation that continues from what another saved after so many rounds."""
    federation = Federation(problem, hosts, participation)
    federation.load(folder, rounds)
    return federation


def standing(federation: Federation, host: Host | SplitHosts) -> dict[str, Any]:
    """All that a run has come to: the server's state and every client's."""
    return {
        "server": federation.server,
        "clients": {str(client): host.state(client) for client in federation.problem.train},
    }


def last_phase(problem: Problem) -> int:
    """The number by which hosts know the exchange that is repeated."""
    return len(list(problem.method.prelude(problem.task)))


def predictions(problem: Problem, server: State, client: State) -> Tensor:
    """The scores for all test samples: by the global model, or where there is none, by the client's."""
    state = None if problem.method.has_global_model else client
    with problem.task.evaluation():
        scores = [problem.method.predict(problem.task, server, state, x) for x, _ in problem.test.values()]
    return torch.cat(scores)


def served_model(server: State) -> Any:
    """The model that the server keeps, with a wrapper that of the method inside; None: there is none."""
    return served_model(server["inner"]) if "inner" in server else server.get("model")


def with_served_model(server: State, model: Any) -> State:
    if "inner" in server:
        return {**server, "inner": with_served_model(server["inner"], model)}
    return {**server, "model": model}


@dataclass(frozen=True)
class Work:
    """One client's work in one exchange: what went in, what came out, and copies of it made at the time."""

    phase: int
    number: int
    client: int
    state: State
    message: Message
    reply: Reply
    kept: State
    """The client's private state afterwards."""
    copies: Mapping[str, Any]

    @property
    def edited(self) -> list[str]:
        """What has been changed in place since."""
        now = {"state": self.state, "message": self.message, "reply": self.reply.content, "kept": self.kept}
        return differing(self.copies, now)


class WatchedHost(LoopHost):
    """Notes all local work, and may disturb the private state that goes into it."""

    def __init__(self, problem: Problem, disturb: Callable[[int, State], State] | None = None) -> None:
        super().__init__(problem)
        self._disturb = disturb
        self.work_done: list[Work] = []

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        if self._disturb is not None:
            for client, _ in messages:
                if state := self.state(client):
                    self._states[client] = self._disturb(client, state)
        before = {client: self.state(client) for client, _ in messages}
        given = copied({str(client): {"state": before[client], "message": m} for client, m in messages})
        replies = list(super().run(phase, number, messages))
        for (client, message), reply in zip(messages, replies, strict=True):
            kept = self.state(client)
            copies = given[str(client)] | copied({"reply": reply.content, "kept": kept})
            self.work_done.append(Work(phase, number, client, before[client], message, reply, kept, copies))
        return replies


class SplitHosts:
    """Two hosts that share the clients and nothing else, as the actors of the executor `ray` do."""

    executor = "split"

    def __init__(self, problem: Problem, fresh: Callable[[], FedAlgorithm]) -> None:
        clients = sorted(problem.train)
        self._home = {client: position % 2 for position, client in enumerate(clients)}
        self._hosts = {}
        for home in sorted(set(self._home.values())):
            part = with_only(problem, [client for client in clients if self._home[client] == home])
            self._hosts[home] = LoopHost(replace(part, method=fresh()), str(home))

    def run(self, phase: int, number: int, messages: Sequence[tuple[int, Message]]) -> list[Reply]:
        replies: dict[int, Reply] = {}
        for home, host in reversed(self._hosts.items()):  # the order in which hosts finish is not fixed
            part = [(client, copied(m)) for client, m in messages if self._home[client] == home]
            replies |= {reply.client: reply for reply in (host.run(phase, number, part) if part else [])}
        return [replies[client] for client, _ in messages]

    def state(self, client: int) -> State:
        return self._hosts[self._home[client]].state(client)

    def score(self, server: State, clients: Sequence[int]) -> list[Scores]:
        return [self._hosts[self._home[client]].score(server, [client])[0] for client in clients]

    def observe(self, server: State, clients: Sequence[int]) -> list[Mapping[str, float]]:
        return [self._hosts[self._home[client]].observe(server, [client])[0] for client in clients]

    def save(self, folder: Path) -> None:
        for host in self._hosts.values():
            host.save(folder)

    def load(self, folder: Path) -> None:
        for host in self._hosts.values():
            host.load(folder)

    def close(self) -> None:
        """Nothing to do here."""


@dataclass
class Course:
    """A watched run with one client after the other: what every round began with and recorded."""

    problem: Problem
    host: WatchedHost
    federation: Federation
    inputs: dict[str, Any]
    """The initial model and the clients' data."""
    input_copies: dict[str, Any]
    """Made before the run."""
    prelude: dict[str, Any] | None = None
    servers: list[State] = field(default_factory=list)
    """At the start, after the exchanges before round 1, and after every round."""
    server_copies: list[State] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        problem: Problem,
        rounds: int,
        participation: float = 1.0,
        disturb: Callable[[int, State], State] | None = None,
    ) -> Course:
        data = {str(client): {"x": x, "y": y} for client, (x, y) in problem.train.items()}
        inputs = {"initial": problem.task.initial, "data": data}
        copies = copied(inputs)
        host = WatchedHost(problem, disturb)
        federation = Federation(problem, host, participation)
        course = cls(problem, host, federation, inputs, copies)
        course._note()
        course.prelude = federation.prelude() if federation.has_prelude else None
        course._note()
        for _ in range(rounds):
            course.records.append(federation.advance())
            course._note()
        return course

    def _note(self) -> None:
        self.servers.append(self.federation.server)
        self.server_copies.append(copied(self.federation.server))

    @property
    def work(self) -> list[Work]:
        return self.host.work_done

    @property
    def rounds_work(self) -> list[Work]:
        """Without the exchanges before round 1."""
        return [each for each in self.work if each.number > 0]

    @property
    def standing(self) -> dict[str, Any]:
        return standing(self.federation, self.host)
