"""FedGA: the weights move towards clients that the average serves worse."""

from dataclasses import replace

import pytest
import torch

from methods.base import State, Task
from methods.fedavg import FedAvg
from methods.fedga import FedGA
from tests.kit.tiny import (
    close,
    equal,
    mlp_task,
    nearby,
    reply,
    server_after,
    uneven_clients,
)


def after_round(method: FedGA, task: Task, gaps: list[float], server: State | None = None) -> State:
    replies = [reply(k, 1, model=task.initial, gap=torch.tensor(gap)) for k, gap in enumerate(gaps)]
    return method.aggregate(task, server or method.server(task), replies)


# The server


def test_weights_are_clipped_at_zero_and_average_the_models() -> None:
    task = mlp_task()
    models = [nearby(task.initial, seed) for seed in (1, 2, 3)]
    gaps = [1.0, -1.0, -0.5]
    replies = [reply(k, 5, model=models[k], gap=torch.tensor(gaps[k])) for k in range(3)]
    server = FedGA(step=0.5).aggregate(task, FedGA().server(task), replies)
    first, third = (1 / 3 + 0.5), 1 / 3 - 0.25
    total = first + third
    assert server["shares"].tolist() == pytest.approx([first / total, 0.0, third / total])
    expected = (first / total) * models[0] + (third / total) * models[2]
    assert close(server["model"], expected, tolerance=1e-6)


def test_the_step_falls_to_zero_over_the_rounds() -> None:
    task = replace(mlp_task(), rounds=4)
    method = FedGA(step=0.1)
    moves = []
    server = method.server(task)
    for _ in range(6):
        before = server["shares"]
        server = after_round(method, task, [1.0, -1.0, 0.0], server | {"shares": torch.full((3,), 1 / 3)})
        moves.append(float(server["shares"][0] - 1 / 3))
        assert before is not server["shares"]
    assert moves == pytest.approx([0.1, 0.075, 0.05, 0.025, 0.0, 0.0], abs=1e-6)


def test_no_gap_moves_nothing_and_no_weight_at_all_is_refused() -> None:
    task = mlp_task()
    assert after_round(FedGA(), task, [0.0, 0.0, 0.0])["shares"].tolist() == [1 / 3] * 3
    assert after_round(FedGA(step=0.5), task, [-1.0, -1.0, -1.0])["shares"].tolist() == [1 / 3] * 3


# The clients


@pytest.mark.parametrize(("share", "held"), [(0.2, 2), (0.5, 5), (0.3, 3), (0.05, 0)])
def test_the_share_that_is_held_out(share: float, held: int) -> None:
    assert int(FedGA(held_out=share).is_held_out(torch.arange(10)).sum()) == held


def test_without_step_and_held_out_samples_it_is_fedavg_with_uniform_weights() -> None:
    ours = server_after(2, FedGA(step=0.0, held_out=0.0), mlp_task(), uneven_clients())["model"]
    plain = server_after(2, FedAvg(weighting="uniform"), mlp_task(), uneven_clients())["model"]
    assert equal(ours, plain)
