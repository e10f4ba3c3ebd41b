"""Batch norm under averaging, and kept private by FedBN, against a plain PyTorch loop."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.engine.batch_norm import check_last_batches
from bench.engine.conditions import Conditions
from bench.engine.executors import choose, make_hosts
from bench.engine.federation import Federation
from bench.engine.hosts.loop import LoopHost
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

SHAPE, SIZES, BATCH, ROUNDS = (3, 8, 8), (9, 6), 4, 3
RATE, MOMENTUM = 0.05, 0.9


def pictures(count: int, seed: int) -> Samples:
    source = draw(seed)
    x = torch.randint(0, 256, (count, *SHAPE), generator=source, dtype=torch.uint8)
    return Samples(x, torch.arange(count) % CLASSES)


def problem(method: FedAlgorithm) -> Problem:
    spec = CNN(channels=(3, 4), features=6, embedding=5, grid=2, use_bn=True)
    model = seeded_model(spec, SHAPE, CLASSES, seed=0)
    optimiser = SGD(lr=RATE, momentum=MOMENTUM)
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


def by_pytorch(made: Problem, private: bool) -> list[nn.Module]:
    """Every client's model after the last average: modules, state dicts and `torch.optim` alone."""
    clients: list[nn.Module] = [copy.deepcopy(made.task.model) for _ in SIZES]
    for number in range(1, ROUNDS + 1):
        for client, model in enumerate(clients):
            optimiser = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
            x, y = made.train[client]
            for order in made.orders(client, number, len(y)):
                for at in order.split(BATCH):
                    optimiser.zero_grad()
                    F.cross_entropy(model(x[at]), y[at]).backward()
                    optimiser.step()
        states = [copy.deepcopy(model.state_dict()) for model in clients]
        for model, state in zip(clients, states, strict=True):
            own = dict(state)
            for leaf in own:
                if own[leaf].is_floating_point() and not (private and is_of_batch_norm(model, leaf)):
                    own[leaf] = sum(s[leaf] * n for s, n in zip(states, SIZES, strict=True)) / sum(SIZES)
            model.load_state_dict(own)
    return clients


def scores_of(model: nn.Module, x: Tensor) -> Tensor:
    model.eval()
    with torch.no_grad():
        scores: Tensor = model(x)
    return scores


@pytest.mark.parametrize("method", [FedAvg(), FedBN()], ids=["averaged", "private"])
def test_rounds_are_those_of_a_plain_pytorch_loop(method: FedAlgorithm) -> None:
    made = problem(method)
    host = LoopHost(made)
    federation = Federation(made, host)
    for _ in range(ROUNDS):
        federation.advance()
    theirs = by_pytorch(made, private=isinstance(method, FedBN))
    x = made.test["all"].x
    for client, model in enumerate(theirs):
        state = host.state(client)
        ours = federation.server["model"] | state["norm"] if "norm" in state else federation.server["model"]
        for leaf, expected in model.state_dict().items():
            if expected.is_floating_point():
                assert torch.allclose(ours[leaf], expected, atol=1e-5), leaf
        with made.task.evaluation():
            found = method.predict(made.task, federation.server, state or None, x)
        assert torch.allclose(found, scores_of(model, x), atol=1e-4)
    start = made.task.initial["encoder.2.running_var"]
    assert not torch.allclose(ours["encoder.2.running_var"], start, atol=0.1), "statistics did not move"
    assert int(made.task.initial["encoder.2.num_batches_tracked"]) == 0, "the initial model was changed"


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
        make_hosts(made, None, Conditions(executor="stacked"))  # type: ignore[arg-type]


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
