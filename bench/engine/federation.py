"""The server's side of a run: choose clients, send, collect, count bytes, aggregate, measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from bench.engine.asked import Asked, Round, answered
from bench.engine.checkpoints import load_state, save_state
from bench.engine.clients.base import Host, Hosts
from bench.engine.evaluation import fraction, own_accuracy, predicted, with_other_predictions
from bench.engine.problem import Problem
from bench.engine.shared_preludes import Exchanged, SharedPreludes
from bench.engine.stacking.replies import Replies
from bench.records.predictions import Predictions, labels_digest
from methods.base import Exchange, Message, Reply, Samples, State, Task
from methods.core.optional import FoldsReplies
from methods.core.tree import size_in_bytes


class Federation:
    """A run as it stands after some number of rounds."""

    def __init__(self, problem: Problem, hosts: Hosts, participation: float = 1.0) -> None:
        self.hosts = hosts
        self.rounds = 0
        self.stacked_with = 1
        """The most cells that its clients' work was computed with in one call, itself included."""
        self._clients = sorted(problem.train)
        self._per_round = max(1, round(participation * len(self._clients)))
        problem = replace(problem, task=replace(problem.task, per_round=self._per_round))
        self.problem = problem
        self._exchanges = problem.exchanges()
        self._combine = [_combination(exchange) for exchange in self._exchanges]
        self._server: State = problem.method.server(problem.task)
        self._guesses: dict[str, Tensor] = {}
        self._right: dict[str, Tensor] = {}

    @property
    def server(self) -> State:
        return self._server

    @property
    def has_prelude(self) -> bool:
        return len(self._exchanges) > 1

    def prelude(self, shared: SharedPreludes | None = None) -> dict[str, Any]:
        """The exchanges before the first round, with all clients; recorded as round 0.

        `shared` has those of other cells, with the same data and model.
        """
        shared = shared or SharedPreludes()
        traffic = {"bytes_up": 0, "bytes_down": 0, "dropped": 0}
        for phase, exchange in enumerate(self._exchanges[:-1]):
            before = self._states()
            known = shared.find(self.problem, exchange, before)
            counts = self._adopt(known) if known else self._first_exchange(phase)
            if known is None and before is not None and (after := self._states()) is not None:
                shared.add(Exchanged(self.problem, exchange, before, after, counts))
            traffic = {key: total + counts[key] for key, total in traffic.items()}
        record: dict[str, Any] = {"round": 0, "clients": len(self._clients), **traffic}
        observed = self.problem.method.observe(self.problem.task, self._server)
        return record | ({"metrics": dict(observed)} if observed else {})

    def _first_exchange(self, phase: int) -> dict[str, int]:
        """One of the exchanges before the first round; returns what was sent."""
        exchange = self._exchanges[phase]
        folds = isinstance(exchange, FoldsReplies)
        traffic = {"bytes_up": 0, "bytes_down": 0, "dropped": 0}
        for group in [[client] for client in self._clients] if folds else [self._clients]:
            exchanged = answered(self._exchange(phase, 0, group))
            traffic = {key: total + exchanged[key] for key, total in traffic.items()}
        if isinstance(exchange, FoldsReplies):
            self._server = exchange.finish(self.problem.task, self._server)
        return traffic

    def _states(self) -> State | None:
        """Of server and clients; None where clients are in other processes, and nothing is shared."""
        if not isinstance(self.hosts, Host):
            return None
        return {"server": self._server, "clients": self.hosts.states()}

    def _adopt(self, known: Exchanged) -> dict[str, int]:
        """Take over what the same exchange has led to in another cell."""
        assert isinstance(self.hosts, Host)
        self._server = known.after["server"]
        self.hosts.adopt(known.after["clients"])
        return known.traffic

    def advance(self) -> dict[str, Any]:
        """One more round; returns its record without accuracies."""
        record: dict[str, Any] = answered(self.advancing())
        return record

    def advancing(self) -> Round:
        """The same, with the clients' work left to whoever goes through it."""
        number = self.rounds + 1
        participants = self.participants(number)
        exchanged = yield from self._exchange(len(self._exchanges) - 1, number, participants)
        self.rounds = number
        observed = self._observe(participants)
        return {"round": number, **exchanged} | ({"metrics": observed} if observed else {})

    def _observe(self, participants: Sequence[int]) -> dict[str, float]:
        """The method's figures: the server's, and the means of those about the round's clients."""
        method = self.problem.method
        figures = dict(method.observe(self.problem.task, self._server))
        if method.observes_clients:
            of_clients = self.hosts.observe(self._server, participants)
            figures |= {name: fmean(each[name] for each in of_clients) for name in of_clients[0]}
        return figures

    def participants(self, number: int) -> list[int]:
        """The clients of a round, in the order of their ids."""
        if self._per_round == len(self._clients):
            return self._clients
        draw = self.problem.task.generator("sampling", number)
        chosen = torch.randperm(len(self._clients), generator=draw)[: self._per_round]
        return [self._clients[position] for position in sorted(chosen.tolist())]

    def evaluate(self, personal: bool) -> dict[str, Any]:
        """Accuracies: per domain, and where asked of the clients on their own kind of data.

        Where clients have models of their own and these are asked for, validation is theirs too.
        """
        scores: dict[str, Any] = answered(self.evaluating(personal))
        return scores

    def evaluating(self, personal: bool) -> Round:
        """The same, with the global model's predictions left to whoever goes through it."""
        method, task = self.problem.method, self.problem.task
        has_private_state = bool(method.client(task))
        if method.has_global_model and not (personal and has_private_state):
            return (yield from self._score_global_model(personal))
        everyone = self.hosts.score(self._server, self._clients)
        if not method.has_global_model:
            names = self.problem.test
            self._right = {name: torch.stack([s.right[name] for s in everyone]).sum(dim=0) for name in names}
        if method.has_global_model:
            of_global = yield from self._score_global_model(personal=False)
            test, losses = of_global.get("test", {}), of_global.get("test_loss", {})
        else:
            test = {name: fmean(scores.test[name] for scores in everyone) for name in self.problem.test}
            losses = {name: fmean(s.losses[name] for s in everyone) for name in everyone[0].losses}
        personal = personal and bool(self.problem.test)
        own = fmean(scores.own for scores in everyone if scores.own is not None) if personal else None
        held_out = [s.validation for s in everyone if s.validation is not None]
        scored = _scores(test, losses, own, held_out)
        others = {name: fmean(s.by_others[name] for s in everyone) for name in everyone[0].by_others}
        return _with_others(scored, others)

    def _score_global_model(self, personal: bool) -> Round:
        tests, held_out = self.problem.test, self.problem.validation
        sets = [*tests.values(), *held_out.values()]
        found = yield self.predicting(sets)
        on_test = dict(zip(tests, found, strict=False))
        self._guesses = {name: classes for name, (classes, _) in on_test.items()}
        right = {name: guesses == tests[name].y for name, guesses in self._guesses.items()}
        self._right = right
        validation = [
            fraction(classes == samples.y)
            for samples, (classes, _) in zip(held_out.values(), found[len(tests) :], strict=True)
        ]
        personal = personal and bool(right)
        own = fmean(own_accuracy(self.problem, right, k) for k in self._clients) if personal else None
        losses = {name: loss for name, (_, loss) in on_test.items() if loss is not None}
        scored = _scores({name: fraction(hits) for name, hits in right.items()}, losses, own, validation)
        return _with_others(scored, (yield from self._scores_by_others()))

    def predicting(self, sets: Sequence[Samples], problem: Problem | None = None) -> Asked:
        """What the global model predicts for these sets of samples, maybe in another way to predict."""
        problem, server = problem or self.problem, self._server

        def alone() -> list[tuple[Tensor, float | None]]:
            return [predicted(problem, server, None, samples) for samples in sets]

        return Asked("predict", problem, server, self.rounds, sets, alone)

    def _scores_by_others(self) -> Round:
        """Name of another way to predict → its mean accuracy over the test sets."""
        tests = list(self.problem.test.values())
        averages = {}
        for name, other in with_other_predictions(self.problem).items():
            found = yield self.predicting(tests, other)
            hits = [classes == samples.y for (classes, _), samples in zip(found, tests, strict=True)]
            averages[name] = fmean(map(fraction, hits))
        return averages

    def predictions(self) -> Predictions | None:
        """What the last evaluation predicted on the test sets; None without test sets.

        Of the global model; of a method without one, how many of the clients' models are right.
        """
        if not self._right:
            return None
        return Predictions(
            digests={name: labels_digest(self.problem.test[name].y.cpu().numpy()) for name in self._right},
            right={name: hits.cpu().numpy() for name, hits in self._right.items()},
            models=1 if self._guesses else len(self._clients),
            predicted={name: guesses.cpu().numpy() for name, guesses in self._guesses.items()},
        )

    def save(self, folder: Path) -> None:
        save_state(self._server, folder / "server.pt")
        self.hosts.save(folder)

    def load(self, folder: Path, rounds: int) -> None:
        self._server = load_state(folder / "server.pt", self.problem.task.device)
        self.hosts.load(folder)
        self.rounds = rounds

    def _exchange(self, phase: int, number: int, clients: Sequence[int]) -> Round:
        exchange, combine = self._exchanges[phase], self._combine[phase]
        task, server = self.problem.task, self._server
        messages = {client: exchange.down(task, server, client) for client in clients}
        run = partial(self.hosts.run, phase, number, list(messages.items()))
        replies = Replies.of((yield Asked("local", self.problem, server, number, messages, run)))
        self.stacked_with = max(self.stacked_with, replies.stacked_with)
        attack = self.problem.attack if number > 0 else None
        if attack is not None:
            replies = Replies(attack.on(task, number, messages, replies))
        sound = replies.sound()
        if sound:
            self._server = yield Asked(
                "aggregate", self.problem, server, number, sound, lambda: combine(task, server, list(sound))
            )
        terms = sound.mean_terms() if task.records_losses else {}
        counts = {
            "bytes_up": replies.size_in_bytes(),
            "bytes_down": _bytes_of_all(list(messages.values())),
            "clients": len(clients),
            "dropped": len(replies) - len(sound),
            **({"loss_terms": terms} if terms else {}),
        }
        return counts if attack is None else counts | {"attackers": attack.among(clients)}


def _combination(exchange: Exchange | FoldsReplies) -> Callable[[Task, State, Sequence[Reply]], State]:
    """How an exchange takes replies into the server's state: all together, or one after the other."""
    if not isinstance(exchange, FoldsReplies):
        return exchange.aggregate

    def fold_all(task: Task, server: State, replies: Sequence[Reply]) -> State:
        for reply in replies:
            server = exchange.fold(task, server, reply)
        return server

    return fold_all


def _bytes_of_all(messages: Sequence[Message]) -> int:
    """What is sent to all clients is measured once."""
    items = [item for message in messages for item in message.values()]
    sizes = {id(item): size_in_bytes(item) for item in {id(item): item for item in items}.values()}
    return sum([sizes[id(item)] for item in items])


def _with_others(scored: dict[str, Any], others: dict[str, float]) -> dict[str, Any]:
    """With the test averages by the method's other ways to predict, among the round's figures."""
    figures = {f"avg_by_{name}": average for name, average in others.items()}
    return scored | ({"metrics": figures} if figures else {})


def _scores(
    test: dict[str, float], losses: dict[str, float], own: float | None, validation: Sequence[float]
) -> dict[str, Any]:
    record: dict[str, Any] = {"test": test} if test else {}
    if losses := {name: loss for name, loss in losses.items() if math.isfinite(loss)}:
        record["test_loss"] = losses
    if own is not None:
        record["personal"] = own
    if validation:
        record["validation"] = fmean(validation)
    return record
