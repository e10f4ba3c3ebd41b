"""q-FedAvg, agnostic FL and FedAWA against closed forms and limits."""

from __future__ import annotations

import pytest
import torch

from methods.agnostic import Agnostic
from methods.base import SGD, Adam, Reply, Samples, State, Task, Tree
from methods.fedavg import FedAvg
from methods.fedawa import FedAWA
from methods.qfedavg import QFedAvg
from tests.kit.tiny import (
    PLAIN,
    WIDTH,
    close,
    draw,
    equal,
    federation,
    head_task,
    mlp_task,
    nearby,
    server_after,
    uneven_clients,
)


def answers(task: Task, losses: list[float]) -> list[Reply]:
    """Replies with models around the initial one, and these losses."""
    return [
        Reply(client, 10, {"model": nearby(task.initial, client), "loss": torch.tensor(loss)})
        for client, loss in enumerate(losses)
    ]


def after(method: FedAvg, task: Task, replies: list[Reply]) -> State:
    return method.aggregate(task, method.server(task), replies)


def cosine(one: Tree, other: Tree) -> float:
    return float(one.dot(other) / (one.norm() * other.norm()))


# q-FedAvg


def model_after(method: FedAvg) -> Tree:
    model: Tree = server_after(2, method, mlp_task(), uneven_clients())["model"]
    return model


def test_at_q_0_q_fedavg_is_fedavg() -> None:
    assert equal(model_after(QFedAvg(q=0.0)), model_after(FedAvg()))


def test_for_q_to_0_q_fedavg_becomes_fedavg() -> None:
    small, none = model_after(QFedAvg(q=1e-7)), model_after(FedAvg())
    assert close(small, none, tolerance=1e-5) and not equal(small, none)


@pytest.mark.parametrize("lipschitz", [None, 0.3])
def test_the_step_of_a_single_client(lipschitz: float | None) -> None:
    task = mlp_task(clients=1, optimiser=SGD(lr=0.1))
    [answer] = answers(task, [0.8])
    moved = answer.content["model"] - task.initial
    step = 1 / (1 + 2.0 * (lipschitz or 10.0) * float(moved.sqnorm()) / 0.8)
    server = after(QFedAvg(q=2.0, lipschitz=lipschitz), task, [answer])
    assert close(server["model"], task.initial + step * moved)
    assert float(server["step_size"]) == pytest.approx(step)


def test_with_a_large_q_the_worst_client_decides() -> None:
    task = mlp_task()
    replies = answers(task, [0.5, 2.0, 1.0])
    worst = replies[1].content["model"] - task.initial
    models = [after(QFedAvg(q=q), task, replies)["model"] for q in (0.0, 1.0, 20.0)]
    turns = [cosine(model - task.initial, worst) for model in models]
    assert turns == sorted(turns) and turns[-1] == pytest.approx(1.0, abs=1e-5)


def test_q_fedavg_needs_a_learning_rate_of_sgd_or_a_constant() -> None:
    task = mlp_task(optimiser=Adam(lr=0.01))
    with pytest.raises(ValueError, match=r"^takes 1 over the learning rate of SGD for L"):
        QFedAvg().check(task)
    QFedAvg(lipschitz=1.0).check(task)
    QFedAvg(q=0.0).check(task)


# Agnostic FL


def test_weights_move_to_the_worse_client_by_the_difference_of_losses() -> None:
    task = head_task(clients=2)
    method, difference = Agnostic(step=0.1), 1.2 - 0.4
    server = method.server(task)
    for rounds in range(1, 9):
        server = method.aggregate(task, server, answers(task, [0.4, 1.2]))
        worse = min(1.0, 0.5 + rounds * 0.1 * difference / 2)
        assert server["shares"].tolist() == pytest.approx([1 - worse, worse])


def coin(heads: int, of: int) -> Samples:
    """Samples that only a bias can tell apart: so many of class 0, the others of class 1."""
    return Samples(torch.zeros(of, WIDTH), torch.tensor([0] * heads + [1] * (of - heads)))


def test_the_limit_is_the_minimax_solution() -> None:
    """Where p = P(class 0), client 0 loses −.8 log p − .2 log(1−p), client 1 −.4 log p − .6 log(1−p).

    FedAvg ends at p = 0.6, where client 1 is worse off. The losses are equal at p = 1/2, and λ with
    λ_0·0.8 + λ_1·0.4 = 1/2 keeps p there.
    """
    task = head_task(clients=2)
    start = task.initial.map(torch.zeros_like)
    start = start | Tree({"classifier.bias": torch.tensor([0.0, 0.0, -30.0])})  # no third class
    task = Task(task.model, start, 3, 2, SGD(lr=0.5), seed=0)
    run, _ = federation(Agnostic(step=0.1), task, [coin(8, 10), coin(4, 10)], batch_size=10)
    for _ in range(300):
        run.advance()
    assert run.server["shares"].tolist() == pytest.approx([0.25, 0.75], abs=0.01)
    p = run.server["model"]["classifier.bias"].softmax(dim=0)
    assert float(p[0]) == pytest.approx(0.5, abs=0.005)


def test_the_mean_of_all_models_predicts() -> None:
    task, clients, models = mlp_task(), uneven_clients(), []
    run, _ = federation(Agnostic(), task, clients)
    for _ in range(3):
        run.advance()
        models.append(run.server["model"])
    assert close(run.server["mean"], (models[0] + models[1] + models[2]) / 3)
    assert run.evaluate(personal=False)["metrics"].keys() == {"avg_by_last"}


def test_clients_without_weight_are_averaged_alike() -> None:
    task = head_task()
    server = Agnostic().server(task) | {"shares": torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)}
    _, *replies = answers(task, [1.0, 1.0, 1.0])
    model = Agnostic().aggregate(task, server, replies)["model"]
    assert close(model, (replies[0].content["model"] + replies[1].content["model"]) / 2)


# FedAWA


def replies_along(task: Task, directions: list[float], samples: list[int]) -> list[Reply]:
    """Models at these distances along one direction that is at right angles to the initial model."""
    away = task.initial.map(lambda leaf: torch.randn(leaf.shape, generator=draw(1)))
    away = away - away.dot(task.initial) / task.initial.sqnorm() * task.initial
    return [
        Reply(client, count, {"model": task.initial + distance * away})
        for client, (distance, count) in enumerate(zip(directions, samples, strict=True))
    ]


def test_weights_move_to_the_clients_that_agree() -> None:
    task = mlp_task()
    replies = replies_along(task, [1.0, 1.1, -1.0], [10, 10, 10])
    server = after(FedAWA(server_lr=0.01), task, replies)
    assert server["moved"].tolist() == pytest.approx([0.01, 0.01, -0.01], rel=1e-4)


def test_many_steps_end_with_the_model_of_a_single_client() -> None:
    task = mlp_task()
    replies = replies_along(task, [1.0, 1.1, -1.0], [10, 10, 10])
    model = after(FedAWA(server_steps=500, server_lr=0.1), task, replies)["model"]
    assert min(float((model - each.content["model"]).norm()) for each in replies) < 0.01


def test_weights_begin_at_those_of_fedavg() -> None:
    task = mlp_task()
    replies = replies_along(task, [1.0, 0.5, -1.0], [5, 30, 15])
    server = after(FedAWA(server_lr=1e-9), task, replies)
    assert close(server["model"], FedAvg().average(replies))


def test_a_client_that_is_away_keeps_its_logit() -> None:
    task = mlp_task()
    method = FedAWA(server_lr=0.1)
    server = method.aggregate(task, method.server(task), replies_along(task, [1.0, 1.1, -1.0], [9, 9, 9]))
    _, *others = replies_along(task, [1.0, 1.1, -1.0], [9, 9, 9])
    assert method.aggregate(task, server, others)["moved"][0] == server["moved"][0]


def test_a_single_client_is_the_average() -> None:
    task = mlp_task(clients=1, optimiser=PLAIN)
    [answer] = replies_along(task, [1.0], [10])
    server = after(FedAWA(server_steps=5), task, [answer])
    assert close(server["model"], answer.content["model"])
    assert bool(torch.isfinite(server["moved"]).all())
