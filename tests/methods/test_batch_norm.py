"""Batch norm: what FedBN keeps private, which executors run it, and batches of one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from bench.engine.batch_norm import check_last_batches
from bench.engine.clients.loop import LoopHost
from bench.engine.conditions import Conditions
from bench.engine.executors import choose, make_hosts
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from bench.errors import UserError
from bench.models.architectures.cnn import CNN
from bench.models.base import seeded_model
from methods.base import FedAlgorithm, Task
from methods.core.batches import Samples
from methods.core.optimisers import SGD
from methods.core.task import initial_tree
from methods.fedavg import FedAvg
from methods.fedbn import FedBN
from tests.kit.tiny import CLASSES, batch_norm_task, draw, mlp_task

SHAPE, SIZES, BATCH = (3, 8, 8), (9, 6), 4


def pictures(count: int, seed: int) -> Samples:
    source = draw(seed)
    x = torch.randint(0, 256, (count, *SHAPE), generator=source, dtype=torch.uint8)
    return Samples(x, torch.arange(count) % CLASSES)


def problem(method: FedAlgorithm) -> Problem:
    spec = CNN(channels=(3, 4), features=6, embedding=5, grid=2, use_bn=True)
    model = seeded_model(spec, SHAPE, CLASSES, seed=0)
    optimiser = SGD(lr=0.05, momentum=0.9)
    task = Task(model, initial_tree(model), CLASSES, len(SIZES), optimiser, seed=0, input_shape=SHAPE)
    train = {client: pictures(count, client) for client, count in enumerate(SIZES)}
    return Problem(
        task=task,
        method=method,
        epochs=2,
        batch_size=BATCH,
        train=train,
        validation={},
        test={"all": pictures(12, 9)},
        own_test={client: {"all": torch.arange(client, 12)} for client in train},
    )


def is_of_batch_norm(model: nn.Module, leaf: str) -> bool:
    return isinstance(model.get_submodule(leaf.rpartition(".")[0]), nn.BatchNorm2d)


def test_fedbn_sends_nothing_of_batch_norm_and_clients_differ_in_it() -> None:
    made = problem(FedBN())
    leaves = made.task.batch_norm_leaves
    assert leaves == {leaf for leaf in made.task.initial if is_of_batch_norm(made.task.model, leaf)}
    assert len(leaves) == 2 * 5
    host = LoopHost(made)
    sent = {"model": made.task.initial.without(leaves)}
    replies = host.run(0, 1, [(client, sent) for client in made.train])
    for reply in replies:
        assert not leaves & set(reply.content["model"])
    first, second = (host.state(client)["norm"]["encoder.2.running_mean"] for client in made.train)
    assert not torch.allclose(first, second)
    record = Federation(made, host).evaluate(personal=True)
    assert set(record) == {"test", "personal"}


def test_fedbn_needs_batch_norm() -> None:
    with pytest.raises(ValueError, match="needs a model with batch norm: choose one"):
        FedBN().check(mlp_task())


def test_batch_norm_is_trained_in_order_and_never_stacked() -> None:
    made = problem(FedAvg())
    assert choose(made)[0] == "loop"
    with pytest.raises(UserError, match="'stacked' cannot run a model with batch norm"):
        make_hosts(made, None, Conditions(executor="stacked"), None)  # type: ignore[arg-type]


def test_a_batch_of_one_without_a_variance_is_refused_beforehand() -> None:
    flat = batch_norm_task()
    five = {0: Samples(torch.randn(5, 5, generator=draw(0)), torch.arange(5) % CLASSES)}
    with pytest.raises(UserError, match="client 0 with its 5 samples has a batch of one"):
        check_last_batches(flat, five, 4)
    check_last_batches(flat, five, 3)
    made = problem(FedAvg())  # a map has many values per channel
    check_last_batches(made.task, made.train, BATCH)
    assert int(made.task.initial["encoder.2.num_batches_tracked"]) == 0
    check_last_batches(replace(flat, model=mlp_task().model), five, 4)
