"""SCAFFOLD and FedDyn, which correct the clients' drift by what they remember."""

from typing import ClassVar

import pytest
import torch
from pydantic import ValidationError

from bench.engine.hosts.loop import LoopHost
from bench.engine.hosts.stacked import StackedHost
from methods.base import Batch, FedAlgorithm, Tree
from methods.core.batches import Samples
from methods.core.optimisers import SGD, Adam, Group, Optimiser
from methods.fedavg import FedAvg
from methods.feddyn import FedDyn
from methods.scaffold import Scaffold
from tests.kit.tiny import (
    CURVATURES,
    MINIMA,
    MINIMUM_OF_MEAN,
    Quadratic,
    batch_norm_task,
    batches_of,
    close,
    federation,
    gradient,
    mlp_task,
    nearby,
    quadratic_clients,
    quadratic_task,
    reply,
    samples,
    server_after,
    uneven_clients,
)

FULL = 100
"""A batch size that no client reaches."""


class _ScaffoldOnQuadratics(Scaffold, Quadratic):
    label: ClassVar[str] = "SCAFFOLD on quadratics"


class _FedDynOnQuadratics(FedDyn, Quadratic):
    label: ClassVar[str] = "FedDyn on quadratics"


def bias_after(rounds: int, method: FedAlgorithm, epochs: int, lr: float = 0.2) -> torch.Tensor:
    task = quadratic_task(lr=lr)
    return server_after(rounds, method, task, quadratic_clients(), epochs=epochs)["model"]["classifier.bias"]


# Where they come to rest


def test_fedavg_rests_at_the_mean_of_the_minima() -> None:
    """The premise of the next tests: with many local steps it misses the minimum of the mean loss."""
    bias = bias_after(3, Quadratic(), epochs=100)
    assert torch.allclose(bias, MINIMA.mean(dim=0), atol=1e-4)
    assert (bias - MINIMUM_OF_MEAN).abs().max() > 0.1


def test_feddyn_rests_at_the_minimum_of_the_mean_loss() -> None:
    bias = bias_after(25, _FedDynOnQuadratics(alpha=1.0), epochs=15)
    assert torch.allclose(bias, MINIMUM_OF_MEAN, atol=1e-4)


def test_scaffold_rests_at_the_minimum_of_the_mean_loss() -> None:
    bias = bias_after(60, _ScaffoldOnQuadratics(), epochs=5, lr=0.1)
    assert torch.allclose(bias, MINIMUM_OF_MEAN, atol=1e-4)


# SCAFFOLD


def test_control_variates_of_two_steps_worked_out_by_hand() -> None:
    """Client 0 takes two steps and client 1 one; the third of the federation stays away."""
    lr, server_lr = 0.1, 0.5
    task = quadratic_task(clients=3, lr=lr)
    method = _ScaffoldOnQuadratics(server_lr=server_lr)
    x = task.initial["classifier.bias"]
    c = torch.tensor([0.3, -0.2, 0.1])
    own = torch.tensor([[0.5, 0.1, -0.4], [-0.1, 0.2, 0.6]])
    server = {"model": task.initial, "control": control(c)}
    replies, ends, new = [], [], []
    for client, steps in enumerate((2, 1)):
        data = quadratic_clients()[client]
        twice = Samples(data.x.expand(steps, -1), data.y.expand(steps))
        message = method.down(task, server, client)
        content, state = method.local(
            task, {"control": control(own[client])}, message, batches_of(twice, size=1)
        )
        replies.append(reply(client, 10 * client + 1, **content))
        y = x
        for _ in range(steps):
            y = y - lr * (CURVATURES[client] * (y - MINIMA[client]) - own[client] + c)
        ends.append(y)
        new.append(own[client] - c + (x - y) / (steps * lr))
        assert torch.allclose(content["model"]["classifier.bias"], y, atol=1e-6)
        assert torch.allclose(state["control"]["classifier.bias"], new[-1], atol=1e-5)
    after = method.aggregate(task, server, replies)
    moved = server_lr * (torch.stack(ends).mean(dim=0) - x)
    assert torch.allclose(after["model"]["classifier.bias"], x + moved, atol=1e-6)
    change = (torch.stack(new) - own).sum(dim=0) / 3
    assert torch.allclose(after["control"]["classifier.bias"], c + change, atol=1e-5)
    assert torch.equal(after["model"]["classifier.weight"], task.initial["classifier.weight"])


def control(bias: torch.Tensor) -> Tree:
    return Tree({"classifier.weight": torch.zeros(3, 1), "classifier.bias": bias})


def test_scaffold_with_one_client_is_plain_sgd() -> None:
    clients = uneven_clients()[:1]
    ends = [
        server_after(4, method, mlp_task(clients=1), clients, epochs=2)["model"]
        for method in (Scaffold(), FedAvg())
    ]
    assert close(*ends, tolerance=1e-5)


def test_scaffold_with_identical_clients_and_batches_is_fedavg() -> None:
    clients = [samples([0, 1, 2, 0, 1], seed=1)] * 3
    ends = [
        server_after(4, method, mlp_task(), clients, epochs=3, batch_size=FULL)["model"]
        for method in (Scaffold(), FedAvg())
    ]
    assert close(*ends, tolerance=1e-5)


def test_scaffold_with_different_clients_is_not_fedavg() -> None:
    ends = [
        server_after(3, method, mlp_task(), uneven_clients())["model"]
        for method in (Scaffold(), FedAvg(weighting="uniform"))
    ]
    assert not close(*ends, tolerance=1e-3)


def test_the_servers_control_is_the_mean_of_the_clients() -> None:
    run, host = federation(Scaffold(), mlp_task(), uneven_clients(), participation=0.7)
    for _ in range(4):
        run.advance()
        assert close(
            run.server["control"], mean([host.state(k)["control"] for k in range(3)]), tolerance=1e-5
        )


def test_option_one_takes_the_gradient_at_the_servers_model() -> None:
    task, method = mlp_task(), Scaffold(control_option="I")
    data = uneven_clients()[1]
    message = method.down(task, method.server(task) | {"model": nearby(task.initial, 1)}, 0)
    sent, kept = method.local(task, method.client(task), message, batches_of(data, size=5))
    plain = FedAvg().objective(task, {}, {})
    expected = gradient(plain, message["model"], Batch(data.x, data.y))
    assert close(kept["control"], expected, tolerance=1e-6)
    assert close(sent["control_change"], expected, tolerance=1e-6)
    second = Scaffold().local(task, method.client(task), message, batches_of(data, size=5))[1]["control"]
    assert not close(second, expected, tolerance=1e-3)


def test_option_one_is_the_same_for_stacked_clients() -> None:
    ends = [
        server_after(3, Scaffold(control_option="I"), mlp_task(), uneven_clients(), kind=kind)
        for kind in (LoopHost, StackedHost)
    ]
    assert close(ends[0]["control"], ends[1]["control"], tolerance=1e-5)
    assert close(ends[0]["model"], ends[1]["model"], tolerance=1e-5)


def test_option_two_is_no_part_of_a_cells_name() -> None:
    assert "control_option" not in Scaffold().model_dump(mode="json")
    assert Scaffold(control_option="I").model_dump(mode="json")["control_option"] == "I"


@pytest.mark.parametrize(
    "optimiser",
    [
        SGD(lr=0.1, momentum=0.9),
        SGD(lr=0.1, weight_decay=1e-5),
        SGD(lr=0.1, clip_norm=1.0),
        SGD(lr=0.1, groups=(Group(match="encoder", lr=0.01),)),
        Adam(lr=0.1),
    ],
    ids=["momentum", "weight decay", "clipping", "groups", "adam"],
)
def test_scaffold_refuses_all_but_plain_sgd(optimiser: Optimiser) -> None:
    with pytest.raises(ValueError, match=r"^needs plain SGD.*set its optimiser"):
        Scaffold().check(mlp_task(optimiser=optimiser))


def test_scaffold_accepts_plain_sgd_of_any_rate() -> None:
    Scaffold().check(mlp_task(optimiser=SGD(lr=0.37)))


# FedDyn


def test_feddyn_objective_has_its_two_terms() -> None:
    task = mlp_task()
    data = uneven_clients()[0]
    batch = Batch(data.x, data.y)
    x, y, g = (nearby(task.initial, seed) for seed in (1, 2, 3))
    message, client = {"model": x}, {"g": g}
    ours = gradient(FedDyn(alpha=0.3).objective(task, client, message), y, batch)
    plain = gradient(FedAvg().objective(task, client, message), y, batch)
    assert close(ours, plain - g + 0.3 * (y - x), tolerance=1e-5)


def test_feddyn_exchange_worked_out_by_hand() -> None:
    """Two of three clients, one of which has taken part before."""
    alpha = 0.5
    task = mlp_task()
    method = FedDyn(alpha=alpha)
    h = nearby(task.initial, 1) - task.initial
    server = {"model": task.initial, "h": h}
    g = nearby(task.initial, 2) - task.initial
    message = method.down(task, server, 0)
    content, state = method.local(task, {"g": g}, message, batches_of(uneven_clients()[0]))
    y = content["model"]
    assert close(state["g"], g - alpha * (y - task.initial))
    other = nearby(task.initial, 3)
    after = method.aggregate(task, server, [reply(0, 7, model=y), reply(2, 100, model=other)])
    new_h = h - alpha / 3 * ((y - task.initial) + (other - task.initial))
    assert close(after["h"], new_h)
    assert close(after["model"], (y + other) / 2 - new_h / alpha, tolerance=1e-5)


def test_h_is_always_the_mean_of_all_clients_g() -> None:
    run, host = federation(FedDyn(alpha=0.1), mlp_task(), uneven_clients(), participation=0.7)
    for _ in range(5):
        run.advance()
        assert float(run.server["h"].norm()) > 1e-3
        assert close(run.server["h"], mean([host.state(k)["g"] for k in range(3)]), tolerance=1e-6)


@pytest.mark.parametrize("alpha", [0, -0.1])
def test_feddyn_has_no_neutral_alpha(alpha: float) -> None:
    with pytest.raises(ValidationError):
        FedDyn(alpha=alpha)


# Both


@pytest.mark.parametrize("method", [Scaffold(server_lr=0.5), FedDyn()], ids=["scaffold", "feddyn"])
def test_buffers_are_averaged_alike(method: FedAlgorithm) -> None:
    """Uniformly, without a correction, and counters are never averaged."""
    task = batch_norm_task()
    models = [nearby(task.initial, k) for k in range(2)]
    zeros = task.initial.only(task.trainable).zeros()
    replies = [reply(k, 10 * k + 1, model=model, control_change=zeros) for k, model in enumerate(models)]
    after = method.aggregate(task, method.server(task), replies)["model"]
    for buffer in ("encoder.1.running_mean", "encoder.1.running_var"):
        assert torch.allclose(after[buffer], (models[0][buffer] + models[1][buffer]) / 2)
    assert torch.equal(after["encoder.1.num_batches_tracked"], models[0]["encoder.1.num_batches_tracked"])
    assert list(after) == list(task.initial)


@pytest.mark.parametrize("kind", [Scaffold, FedDyn])
def test_averages_by_samples_are_refused(kind: type[FedAlgorithm]) -> None:
    with pytest.raises(ValidationError):
        kind(weighting="samples")


def mean(trees: list[Tree]) -> Tree:
    return sum(trees[1:], start=trees[0]) / len(trees)
