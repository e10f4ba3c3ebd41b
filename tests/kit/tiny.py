"""Tasks and federations small enough to be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.models.architectures.cnn import CNN
from bench.models.architectures.head import Head
from bench.models.architectures.mlp import MLP
from bench.models.base import seeded_model
from methods.base import Batch, FedAlgorithm, Loss, Message, Reply, State, Task, Tree
from methods.core.batches import RaggedBatches, Samples
from methods.core.optimisers import SGD, Optimiser
from methods.core.task import initial_tree
from methods.fedavg import FedAvg
from methods.modules.split_model import SplitModel

CLASSES = 3
WIDTH = 5
HIDDEN = 6
PLAIN = SGD(lr=0.1)


def draw(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def task_of(model: SplitModel, clients: int = 3, optimiser: Optimiser = PLAIN) -> Task:
    return Task(model, initial_tree(model), CLASSES, clients, optimiser, seed=0)


def mlp_task(clients: int = 3, optimiser: Optimiser = PLAIN) -> Task:
    return task_of(seeded_model(MLP(hidden=HIDDEN), (WIDTH,), CLASSES, seed=0), clients, optimiser)


def cnn_task(clients: int = 3) -> Task:
    """With a projector between encoder and classifier."""
    spec = CNN(channels=(2, 3), features=HIDDEN, embedding=4, grid=2)
    return task_of(seeded_model(spec, (1, 8, 8), CLASSES, seed=0), clients)


def frozen_task() -> Task:
    """A linear classifier on features that do not train."""
    task = mlp_task()
    task.model.encoder.requires_grad_(False)
    return task_of(task.model)


def batch_norm_task() -> Task:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU())
        head = nn.Linear(HIDDEN, CLASSES)
    return task_of(SplitModel(encoder, nn.Identity(), head, feature_size=HIDDEN, embedding_size=HIDDEN))


def samples(labels: Sequence[int], seed: int, shape: tuple[int, ...] = (WIDTH,)) -> Samples:
    return Samples(torch.randn(len(labels), *shape, generator=draw(seed)), torch.tensor(labels))


def uneven_clients() -> list[Samples]:
    """Three clients of 7, 12 and 4 samples; the last has none of class 2."""
    return [samples([k % 3 for k in range(7)], 1), samples([0, 1, 2] * 4, 2), samples([0, 1, 1, 0], 3)]


def batches_of(data: Samples, size: int | None = None) -> RaggedBatches:
    """One epoch in the given order, by default all at once."""
    return RaggedBatches(data, [torch.arange(len(data.y))], size or len(data.y))


def nearby(tree: Tree, seed: int, scale: float = 0.3) -> Tree:
    """Another point in the space of parameters."""
    source = draw(seed)
    return tree.map(lambda leaf: leaf + scale * torch.randn(leaf.shape, generator=source))


def federation(
    method: FedAlgorithm,
    task: Task,
    clients: Sequence[Samples],
    *,
    epochs: int = 1,
    batch_size: int = 4,
    participation: float = 1.0,
    kind: type[Host] = LoopHost,
) -> tuple[Federation, Host]:
    test = clients[0]
    problem = Problem(
        task=task,
        method=method,
        epochs=epochs,
        batch_size=batch_size,
        train=dict(enumerate(clients)),
        validation={},
        test={"all": test},
        own_test={k: {"all": torch.arange(len(test.y))} for k in range(len(clients))},
    )
    host = kind(problem)
    return Federation(problem, host, participation), host


def server_after(
    rounds: int, method: FedAlgorithm, task: Task, clients: Sequence[Samples], **how: Any
) -> State:
    run, _ = federation(method, task, clients, **how)
    for _ in range(rounds):
        run.advance()
    return run.server


def reply(client: int, samples: int, **content: Any) -> Reply:
    return Reply(client, samples, content)


def equal(one: Tree, other: Tree) -> bool:
    """Bit for bit."""
    return list(one) == list(other) and all(torch.equal(leaf, other[name]) for name, leaf in one.items())


def close(one: Tree, other: Tree, *, tolerance: float = 1e-6) -> bool:
    return list(one) == list(other) and all(
        torch.allclose(leaf, other[name], rtol=0, atol=tolerance) for name, leaf in one.items()
    )


def gradient(loss: Loss, at: Tree, batch: Batch) -> Tree:
    leaves = {name: leaf.detach().requires_grad_() for name, leaf in at.items()}
    grads = torch.autograd.grad(loss(Tree(leaves), batch), list(leaves.values()), materialize_grads=True)
    return Tree(zip(leaves, grads, strict=True))


def head_task(clients: int = 3) -> Task:
    return task_of(seeded_model(Head(), (WIDTH,), CLASSES, seed=0), clients)


def a_batch(key: int = 7) -> Batch:
    data = samples([0, 1, 2, 2, 1, 0, 1], seed=9)
    return Batch(data.x, data.y, key=key)


def log_softmax(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


class Quadratic(FedAvg):
    """Client losses ½ Σ a (y − b)² in the classifier's bias y; a and b stand in the client's one sample."""

    label: ClassVar[str] = "FedAvg on quadratics"

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        def loss(y: Tree, batch: Batch) -> Tensor:
            a, b = batch.x[:, :CLASSES], batch.x[:, CLASSES:]
            return batch.mean((a * (y["classifier.bias"] - b).square()).sum(dim=1)) / 2

        return loss


CURVATURES = torch.tensor([[1.0, 2.0, 0.5], [3.0, 0.5, 1.0], [0.5, 1.0, 2.0]])
MINIMA = torch.tensor([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0], [-2.0, 0.5, 3.0]])
MINIMUM_OF_MEAN = (CURVATURES * MINIMA).sum(dim=0) / CURVATURES.sum(dim=0)


def quadratic_task(clients: int = 3, lr: float = 0.2) -> Task:
    model = SplitModel(nn.Identity(), nn.Identity(), nn.Linear(1, CLASSES), feature_size=1, embedding_size=1)
    return task_of(model, clients, SGD(lr=lr))


def quadratic_clients() -> list[Samples]:
    return [
        Samples(torch.cat([a, b])[None], torch.zeros(1, dtype=torch.long))
        for a, b in zip(CURVATURES, MINIMA, strict=True)
    ]
