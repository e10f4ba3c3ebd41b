"""`bench speed --work sweep`: configurations of one method, one cell at a time and as one stack.

For linear heads there is a third side, the least that has to be computed: SGD on softmax regression written
out in matrix products, for all configurations at once, without a federation around it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.engine.stacking.joint import JointRounds
from bench.models.architectures.head import Head
from bench.models.architectures.mlp import MLP
from bench.models.architectures.vit_mini import VitMini
from bench.models.base import ModelSpec, seeded_model
from bench.speed.samples import CLASSES, dealt, digits, images
from methods.base import FedAlgorithm
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Adam, Optimiser
from methods.core.task import Task, initial_tree
from methods.fedavg import FedAvg
from methods.fedprox import FedProx
from methods.fedsdg import FedSDG

ALONE, STACKED, CLOSED = "one cell at a time", "one stack", "closed form"


@dataclass(frozen=True)
class Sweep:
    """Configurations that are trained for some rounds."""

    model: ModelSpec
    clients: Callable[[], list[Samples]]
    batch_size: int
    rounds: int
    cells: list[tuple[FedAlgorithm, Optimiser]]
    """Of every seed."""
    has_closed_form: bool = False
    seeds: int = 1


def measured(repeats: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Title of each part → side → updates of clients per CPU second, of every repetition."""
    for title, sweep in SWEEPS.items():
        yield title, _measure(sweep, repeats)


def _measure(sweep: Sweep, repeats: int) -> dict[str, list[float]]:
    clients = sweep.clients()
    sides = {ALONE: _alone(sweep, clients), STACKED: _stacked(sweep, clients)}
    if sweep.has_closed_form:
        sides[CLOSED] = _closed_form(sweep, clients)
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for side in sides.values():
        side()
    updates = sweep.rounds * len(clients) * len(sweep.cells) * sweep.seeds
    for _ in range(repeats):
        for name, side in sides.items():
            started = time.process_time()
            side()
            rates[name].append(updates / (time.process_time() - started))
    return rates


def _federations(sweep: Sweep, clients: list[Samples]) -> list[tuple[StackedHost, Federation]]:
    return [
        cell
        for seed in range(sweep.seeds)
        for cell in _of_seed(sweep, [_shuffled(samples, seed) for samples in clients], seed)
    ]


def _of_seed(sweep: Sweep, clients: list[Samples], seed: int) -> Iterator[tuple[StackedHost, Federation]]:
    model = seeded_model(sweep.model, tuple(clients[0].x.shape[1:]), CLASSES, seed)
    initial, train = initial_tree(model), dict(enumerate(clients))
    for method, optimiser in sweep.cells:
        problem = Problem(
            task=Task(model, initial, CLASSES, len(train), optimiser, seed),
            method=method,
            epochs=1,
            batch_size=sweep.batch_size,
            train=train,
            validation={},
            test={},
            own_test={},
        )
        host = StackedHost(problem)
        yield host, Federation(problem, host)


def _shuffled(samples: Samples, seed: int) -> Samples:
    order = torch.randperm(len(samples.y), generator=torch.Generator().manual_seed(seed))
    return Samples(samples.x[order], samples.y[order])


def _alone(sweep: Sweep, clients: list[Samples]) -> Callable[[], None]:
    cells = _federations(sweep, clients)

    def advance() -> None:
        for _, federation in cells:
            for _ in range(sweep.rounds):
                federation.advance()

    return advance


def _stacked(sweep: Sweep, clients: list[Samples]) -> Callable[[], None]:
    cells, joint = _federations(sweep, clients), JointRounds()

    def advance() -> None:
        for _ in range(sweep.rounds):
            for error in joint.advance({host: each.advancing() for host, each in cells}).values():
                raise error

    return advance


def _closed_form(sweep: Sweep, clients: list[Samples]) -> Callable[[], None]:
    """W ← W − η (1/n (softmax(XWᵀ) − Y)ᵀX + μ (W − W₀)) for the heads of all cells, one below the other."""
    x = torch.stack([client.x for client in clients])
    y = torch.stack([client.y for client in clients])
    count, cells, width = len(clients), len(sweep.cells), x.shape[2]
    rates = torch.tensor([optimiser.lr for _, optimiser in sweep.cells]).view(1, cells, 1, 1)
    proximal = any(isinstance(method, FedProx) for method, _ in sweep.cells)
    pulls = rates * torch.tensor([getattr(method, "mu", 0.0) for method, _ in sweep.cells]).view(rates.shape)

    def advance() -> None:
        heads = torch.zeros(cells, CLASSES, width)
        for _ in range(sweep.rounds):
            own = heads.expand(count, cells, CLASSES, width).contiguous()
            for order in torch.randperm(x.shape[1]).split(sweep.batch_size):
                xs, ys = x[:, order], y[:, order]
                logits = torch.bmm(own.view(count, -1, width), xs.mT).view(count, cells, CLASSES, -1)
                error = torch.softmax(logits, dim=2)
                targets = ys[:, None, None, :].expand(count, cells, 1, len(order))
                error.scatter_add_(2, targets, -torch.ones(targets.shape))
                gradient = torch.bmm(error.view(count, cells * CLASSES, -1), xs).view(own.shape)
                if proximal:
                    own.lerp_(heads, pulls)  # W − ημ (W − W₀)
                own.addcmul_(gradient, rates, value=-1 / len(order))
            heads = own.mean(dim=0)

    return advance


CELLS = 24
_RATES = [0.01 * 1.1**cell for cell in range(CELLS)]


def _wide() -> list[Samples]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(10 * 640, 1280, generator=draw)
    return dealt(x, (x @ torch.randn(1280, CLASSES, generator=draw)).argmax(dim=1), 10)


SWEEPS = {
    "heads of 1280, 24 learning rates of FedAvg": Sweep(
        Head(), _wide, 64, 1, [(FedAvg(), SGD(lr=lr)) for lr in _RATES], has_closed_form=True
    ),
    "heads of 1280, 24 settings of FedProx": Sweep(
        Head(), _wide, 64, 1, [(FedProx(mu=10 * lr), SGD(lr=lr)) for lr in _RATES], has_closed_form=True
    ),
    "digits, 24 learning rates of FedAvg": Sweep(
        MLP(hidden=128), lambda: digits()[:10], 16, 10, [(FedAvg(), SGD(lr=lr)) for lr in _RATES]
    ),
    "digits, five seeds of FedAvg": Sweep(
        MLP(hidden=128), lambda: digits()[:10], 16, 40, [(FedAvg(), SGD(lr=0.05))], seeds=5
    ),
    "vit, four settings of FedSDG": Sweep(
        VitMini(),
        lambda: images((64,) * 10),
        32,
        1,
        [
            (FedSDG(lam1=lam1, lam2=lam2), Adam(lr=1e-3, clip_norm=1.0))
            for lam1 in (1e-4, 1e-3)
            for lam2 in (1e-5, 1e-4)
        ],
    ),
}
