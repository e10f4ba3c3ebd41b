"""A round counted in steps instead of epochs."""

from __future__ import annotations

import pytest
import torch

from bench.engine.clients.base import Host
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.federation import Federation
from bench.engine.problem import Problem
from methods.fedavg import FedAvg
from methods.scaffold import Scaffold
from tests.kit.tiny import close, mlp_task, uneven_clients


def problem(steps: int | None, epochs: int = 1, method: FedAvg | None = None) -> Problem:
    return Problem(
        task=mlp_task(),
        method=method or FedAvg(),
        epochs=epochs,
        batch_size=4,
        steps=steps,
        train=dict(enumerate(uneven_clients())),
        validation={},
        test={},
        own_test={},
    )


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_every_client_takes_so_many_steps_through_whole_epochs(steps: int) -> None:
    for client, samples in problem(steps).train.items():
        orders = problem(steps).orders(client, 1, len(samples.y))
        assert sum(-(-len(order) // 4) for order in orders) == steps
        for order in orders[:-1]:
            assert order.sort().values.tolist() == list(range(len(samples.y)))
        assert len(set(orders[-1].tolist())) == len(orders[-1])


@pytest.mark.parametrize("method", [FedAvg(), Scaffold()])
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_stacked_is_the_loop(steps: int, method: FedAvg) -> None:
    ends = []
    for kind in (LoopHost, StackedHost):
        run = Federation(problem(steps, method=method), kind(problem(steps, method=method)))
        for _ in range(2):
            run.advance()
        ends.append(run.server["model"])
    assert close(*ends, tolerance=1e-5)


@pytest.mark.parametrize("kind", [LoopHost, StackedHost])
def test_the_steps_of_whole_epochs_are_those_epochs(kind: type[Host]) -> None:
    """Client 1 has twelve samples: three steps are an epoch."""
    models = []
    for steps, epochs in ((6, 1), (None, 2)):
        alone = problem(steps, epochs)
        host = kind(alone)
        message = {"model": alone.task.initial}
        models.append(host.run(0, 1, [(1, message)])[0].content["model"])
    assert close(*models, tolerance=0)
    assert not torch.equal(models[0]["classifier.bias"], alone.task.initial["classifier.bias"])
