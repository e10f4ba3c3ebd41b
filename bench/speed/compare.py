"""`bench speed`: updates per CPU second of each executor and of a plain PyTorch loop, measured in turn.

The small works are those on which public frameworks are compared: an MLP 64-128-10, 100 clients of which 10
take part in a round, batch 16; one step per client (`digits`) or twenty (`synth`). `cnn` is a round of the
Office-Caltech suite on random images of the same sizes. `heads` is the frozen-encoder track: linear heads on
512 dimensions, 100 clients of 320 samples that all take part, batch 64 and batch 16;
`vit` is a round of FedSDG: ten clients, a small transformer with shared and private adapters and gates.
`extraction` and `sweep` are in modules of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.engine.process import use_share
from bench.errors import UserError, nearest
from bench.models.architectures.cnn import CNN
from bench.models.architectures.head import Head
from bench.models.architectures.mlp import MLP
from bench.models.architectures.vit_mini import VitMini
from bench.models.base import ModelSpec, seeded_model
from bench.speed.samples import CLASSES, digits, embeddings, images, synth
from methods.base import FedAlgorithm
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Adam, Optimiser
from methods.core.task import Task, initial_tree
from methods.fedavg import FedAvg
from methods.fedsdg import FedSDG
from methods.modules.split_model import SplitModel


@dataclass(frozen=True)
class Work:
    model: ModelSpec
    clients: Callable[[], list[Samples]]
    per_round: int
    rounds: int
    epochs: int
    batch_size: int
    optimiser: Optimiser
    hosts: tuple[type[Host], ...]
    method: FedAlgorithm = field(default_factory=FedAvg)
    by_hand: Callable[[Work, list[Samples]], Callable[[int], None]] | None = None
    """The plain loop, where it is not that of FedAvg."""


def check_work(name: str) -> None:
    """A UserError if there is no work of this name."""
    if name not in (known := [*WORKS, SWEEP, EXTRACTION]):
        raise UserError(f"unknown work '{name}'; {nearest(name, known)}")


def measured(name: str, repeats: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Title of each part of a work → side → rates per CPU second of every repetition.

    Training is measured on one thread, extraction on all.
    """
    if name == EXTRACTION:
        from bench.speed import extraction

        yield name, extraction.measured(repeats)
        return
    threads = torch.get_num_threads()
    use_share(threads=1)
    try:
        if name == SWEEP:
            from bench.speed import sweep

            yield from sweep.measured(repeats)
            return
        for title, work in WORKS[name].items():
            yield title, measure(work, repeats)
    finally:
        torch.set_num_threads(threads)


def measure(work: Work, repeats: int) -> dict[str, list[float]]:
    """Side → updates per CPU second of every repetition; taking turns, the sides meet the same noise."""
    clients = work.clients()
    sides: dict[str, Callable[[int], None]] = {"plain loop": (work.by_hand or _plain_loop)(work, clients)}
    for host in work.hosts:
        sides[{LoopHost: "in order", StackedHost: "stacked"}[host]] = _ours(work, clients, host)
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for side in sides.values():
        side(1)
    for _ in range(repeats):
        for name, side in sides.items():
            started = time.process_time()
            side(work.rounds)
            rates[name].append(work.rounds * work.per_round / (time.process_time() - started))
    return rates


def _ours(work: Work, clients: list[Samples], host: type[Host]) -> Callable[[int], None]:
    model = fresh_model(work, clients)
    train = dict(enumerate(clients))
    problem = Problem(
        task=Task(model, initial_tree(model), CLASSES, len(train), work.optimiser, seed=0),
        method=work.method,
        epochs=work.epochs,
        batch_size=work.batch_size,
        train=train,
        validation={},
        test={},
        own_test={},
    )
    federation = Federation(problem, host(problem), work.per_round / len(train))

    def advance(rounds: int) -> None:
        for _ in range(rounds):
            federation.advance()

    return advance


def _plain_loop(work: Work, clients: list[Samples]) -> Callable[[int], None]:
    """FedAvg as one would write it by hand: one module, one torch optimiser per client, weighted average."""
    model = fresh_model(work, clients)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    choice = np.random.default_rng(0)
    settings = work.optimiser
    assert isinstance(settings, SGD)

    def train(client: Samples) -> None:
        optimiser = torch.optim.SGD(
            model.parameters(), settings.lr, settings.momentum, weight_decay=settings.weight_decay
        )
        for _ in range(work.epochs):
            for at in torch.randperm(len(client.y)).split(work.batch_size):
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(client.x[at]), client.y[at]).backward()
                optimiser.step()

    def advance(rounds: int) -> None:
        nonlocal state
        for _ in range(rounds):
            chosen = choice.choice(len(clients), work.per_round, replace=False)
            total = sum(len(clients[k].y) for k in chosen)
            summed = {name: torch.zeros_like(value) for name, value in state.items()}
            for k in chosen:
                model.load_state_dict(state)
                train(clients[k])
                for name, value in model.state_dict().items():
                    summed[name] += value * (len(clients[k].y) / total)
            state = summed

    return advance


def fresh_model(work: Work, clients: list[Samples]) -> SplitModel:
    return seeded_model(work.model, tuple(clients[0].x.shape[1:]), CLASSES, seed=0)


EXTRACTION = "extraction"
SWEEP = "sweep"


def _fedsdg_by_hand(work: Work, clients: list[Samples]) -> Callable[[int], None]:
    from bench.speed.fedsdg import plain_loop

    return plain_loop(work, fresh_model(work, clients), clients)


_SMALL = {
    "model": MLP(hidden=128),
    "per_round": 10,
    "epochs": 1,
    "batch_size": 16,
    "optimiser": SGD(lr=0.1),
    "hosts": (LoopHost, StackedHost),
}
_HEADS = {
    "model": Head(),
    "clients": embeddings,
    "per_round": 100,
    "rounds": 1,
    "epochs": 1,
    "optimiser": SGD(lr=0.1),
    "hosts": (LoopHost, StackedHost),
}
WORKS: dict[str, dict[str, Work]] = {
    "digits": {"digits": Work(clients=digits, rounds=50, **_SMALL)},  # type: ignore[arg-type]
    "synth": {"synth": Work(clients=synth, rounds=5, **_SMALL)},  # type: ignore[arg-type]
    "cnn": {
        "cnn": Work(
            model=CNN(),
            clients=lambda: images((179, 153, 47, 25)),
            per_round=4,
            rounds=1,
            epochs=1,
            batch_size=64,
            optimiser=SGD(lr=0.01, momentum=0.9, weight_decay=1e-5),
            hosts=(LoopHost,),
        )
    },
    "heads": {
        f"heads, batch {size}": Work(batch_size=size, **_HEADS)  # type: ignore[arg-type]
        for size in (64, 16)
    },
    "vit": {
        "vit": Work(
            model=VitMini(),
            clients=lambda: images((64,) * 10),
            per_round=10,
            rounds=1,
            epochs=1,
            batch_size=32,
            optimiser=Adam(lr=1e-3, clip_norm=1.0),
            hosts=(LoopHost, StackedHost),
            method=FedSDG(),
            by_hand=_fedsdg_by_hand,
        )
    },
}
