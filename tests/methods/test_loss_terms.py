"""FedProx, FedNTD and MOON: FedAvg with another term in the clients' loss."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from methods.base import Batch, FedAlgorithm, Loss, State, Task, Tree
from methods.fedavg import FedAvg
from methods.fedntd import FedNTD, not_true_divergence
from methods.fedprox import FedProx
from methods.modules.split_model import SplitModel
from methods.moon import Moon
from tests.kit.tiny import (
    CLASSES,
    batches_of,
    close,
    cnn_task,
    equal,
    federation,
    frozen_task,
    gradient,
    mlp_task,
    nearby,
    samples,
    server_after,
    task_of,
    uneven_clients,
)


def a_batch(shape: tuple[int, ...] = (5,)) -> Batch:
    data = samples([0, 1, 2, 2, 1, 0, 1], seed=9, shape=shape)
    return Batch(data.x, data.y)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def plain_loss(task: Task, y: Tree, batch: Batch) -> float:
    p = softmax(task.logits(y, batch.x).detach().double().numpy())
    return float(-np.log(p[np.arange(len(batch.y)), batch.y.numpy()]).mean())


@pytest.mark.parametrize(
    "neutral", [FedProx(mu=0), FedNTD(beta=0), Moon(mu=0)], ids=["fedprox", "fedntd", "moon"]
)
def test_without_the_term_it_is_fedavg_to_the_last_bit(neutral: FedAlgorithm) -> None:
    ends = [
        server_after(3, method, mlp_task(), uneven_clients(), epochs=2)["model"]
        for method in (neutral, FedAvg())
    ]
    assert equal(*ends)


@pytest.mark.parametrize("method", [FedProx(mu=1), FedNTD(), Moon()], ids=["fedprox", "fedntd", "moon"])
def test_the_term_makes_a_difference(method: FedAlgorithm) -> None:
    ends = [
        server_after(3, each, mlp_task(), uneven_clients(), epochs=2)["model"] for each in (method, FedAvg())
    ]
    assert not close(*ends, tolerance=1e-4)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (FedProx, {"mu": -0.1}),
        (FedNTD, {"beta": -1}),
        (FedNTD, {"tau": 0}),
        (Moon, {"mu": -1}),
        (Moon, {"temperature": 0}),
    ],
)
def test_weights_and_temperatures_out_of_bounds_are_refused(
    kind: type[FedAlgorithm], wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        kind(**wrong)


# FedProx


def test_fedprox_adds_half_mu_times_the_squared_distance() -> None:
    task, batch = mlp_task(), a_batch()
    x, y = nearby(task.initial, 1), nearby(task.initial, 2)
    squares = sum(float(((y[name] - x[name]).double() ** 2).sum()) for name in x)
    value = FedProx(mu=0.3).objective(task, {}, {"model": x})(y, batch)
    assert float(value) == pytest.approx(plain_loss(task, y, batch) + 0.15 * squares, rel=1e-5)


def test_fedprox_with_a_huge_mu_stays_where_it_was() -> None:
    task = mlp_task()
    moved = server_after(1, FedProx(mu=9.9), task, uneven_clients(), epochs=20)["model"] - task.initial
    free = server_after(1, FedAvg(), task, uneven_clients(), epochs=20)["model"] - task.initial
    assert float(moved.norm()) < 0.1 * float(free.norm())


# FedNTD


def test_divergence_is_zero_where_only_the_true_logit_differs() -> None:
    y = torch.tensor([0, 3, 1, 4])
    student = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    teacher = student.clone()
    teacher[torch.arange(4), y] += torch.tensor([5.0, -3.0, 1.0, 0.5])
    assert torch.allclose(not_true_divergence(student, teacher, y, tau=2.0), torch.zeros(4), atol=1e-7)
    elsewhere = student.clone()
    elsewhere[torch.arange(4), (y + 1) % 5] += 1.0
    assert (not_true_divergence(student, elsewhere, y, tau=2.0) > 0.01).all()


@pytest.mark.parametrize("tau", [1.0, 3.0])
def test_fedntd_adds_the_divergence_of_numpy(tau: float) -> None:
    task, batch = mlp_task(), a_batch()
    x, y = nearby(task.initial, 1), nearby(task.initial, 2)
    value = FedNTD(beta=0.7, tau=tau).objective(task, {}, {"model": x})(y, batch)
    teacher, student = (task.logits(params, batch.x).detach().double().numpy() for params in (x, y))
    divergences = []
    for row, true in enumerate(batch.y.tolist()):
        p, q = (softmax(np.delete(logits[row], true) / tau) for logits in (teacher, student))
        divergences.append((p * np.log(p / q)).sum())
    expected = plain_loss(task, y, batch) + 0.7 * tau**2 * np.mean(divergences)
    assert float(value) == pytest.approx(expected, rel=1e-5)


def test_fedntd_does_not_touch_the_true_logit_beyond_cross_entropy() -> None:
    """The divergence has no gradient in the true class's logit."""
    y = torch.tensor([2, 0])
    student = torch.randn(2, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
    teacher = torch.randn(2, 4, generator=torch.Generator().manual_seed(2))
    (grad,) = torch.autograd.grad(not_true_divergence(student, teacher, y, tau=1.0).sum(), student)
    assert grad[torch.arange(2), y].tolist() == [0.0, 0.0]
    assert grad.abs().sum() > 0.1


# MOON


def moon_state(task: Task, previous: Tree, took_part: bool) -> State:
    return Moon().client(task) | {"previous": previous, "took_part": torch.tensor(took_part)}


def moon_term(task: Task, y: Tree, teachers: tuple[Tree, Tree], batch: Batch, temperature: float) -> float:
    """In numpy, from the projector's outputs."""

    def z(params: Tree) -> np.ndarray:
        rows = task.project(params, task.encode(params, batch.x)).detach().double().numpy()
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    own = z(y)
    cosines = np.stack([(own * z(teacher)).sum(axis=1) for teacher in teachers], axis=1)
    return float(-np.log(softmax(cosines / temperature)[:, 0]).mean())


def test_the_term_is_mu_log_2_before_the_first_participation() -> None:
    task, batch = cnn_task(), a_batch((1, 8, 8))
    x, y, unused = (nearby(task.initial, seed) for seed in (1, 2, 3))
    value = Moon(mu=0.7).objective(task, moon_state(task, unused, False), {"model": x})(y, batch)
    assert float(value) == pytest.approx(plain_loss(task, y, batch) + 0.7 * math.log(2), rel=1e-5)


@pytest.mark.parametrize("make_task", [cnn_task, mlp_task])
def test_the_contrast_is_that_of_numpy_afterwards(make_task: type) -> None:
    task = make_task()
    batch = a_batch((1, 8, 8) if make_task is cnn_task else (5,))
    x, y, previous = (nearby(task.initial, seed) for seed in (1, 2, 3))
    value = Moon(mu=0.7, temperature=0.4).objective(task, moon_state(task, previous, True), {"model": x})(
        y, batch
    )
    expected = plain_loss(task, y, batch) + 0.7 * moon_term(task, y, (x, previous), batch, 0.4)
    assert float(value) == pytest.approx(expected, rel=1e-5)


def test_a_client_remembers_the_model_of_its_last_participation() -> None:
    run, host = federation(Moon(), mlp_task(), uneven_clients(), participation=0.7)
    seen: dict[int, Tree] = {}
    for number in range(1, 5):
        before = {k: host.state(k) for k in range(3)}
        present = run.participants(number)
        run.advance()
        for k in range(3):
            assert bool(host.state(k)["took_part"]) == (k in present or k in seen)
            if k in present:
                assert not equal(host.state(k)["previous"], before[k]["previous"])
                seen[k] = host.state(k)["previous"]
            elif k in seen:
                assert equal(host.state(k)["previous"], seen[k])


def test_the_remembered_model_is_the_one_sent() -> None:
    task = mlp_task()
    message = Moon().down(task, {"model": task.initial}, 0)
    reply, state = Moon().local(task, Moon().client(task), message, batches_of(uneven_clients()[0]))
    assert equal(reply["model"], state["previous"])
    assert list(reply) == ["model"]


def teacher_leaves_with_gradient(
    objective: Loss, teachers: list[Tree], y: Tree, batch: Batch
) -> list[Tensor]:
    leaves = [leaf for teacher in teachers for leaf in teacher.values()]
    own = Tree({name: leaf.clone().requires_grad_() for name, leaf in y.items()})
    grads = torch.autograd.grad(objective(own, batch), [*own.values(), *leaves], allow_unused=True)
    assert any(grad is not None for grad in grads[: len(own)])
    return [grad for grad in grads[len(own) :] if grad is not None]


def test_teachers_get_no_gradient() -> None:
    task, batch = mlp_task(), a_batch()
    x, previous = (
        Tree({name: leaf.requires_grad_() for name, leaf in nearby(task.initial, seed).items()})
        for seed in (1, 2)
    )
    y = nearby(task.initial, 3)
    moon = Moon().objective(task, moon_state(task, previous, True), {"model": x})
    assert teacher_leaves_with_gradient(moon, [x, previous], y, batch) == []
    fedntd = FedNTD().objective(task, {}, {"model": x})
    assert teacher_leaves_with_gradient(fedntd, [x], y, batch) == []


def test_moon_refuses_a_task_whose_representation_does_not_train() -> None:
    with pytest.raises(ValueError, match=r"^has no effect where nothing before the classifier is trained"):
        Moon().check(frozen_task())


def test_moon_accepts_a_trainable_projection_on_frozen_features() -> None:
    model = SplitModel(
        nn.Identity(), nn.Linear(5, 4), nn.Linear(4, CLASSES), feature_size=5, embedding_size=4
    )
    task = task_of(model)
    Moon().check(task)
    y = nearby(task.initial, 1)
    objective = Moon(mu=1.0).objective(
        task, moon_state(task, nearby(task.initial, 2), True), {"model": task.initial}
    )
    plain = FedAvg().objective(task, {}, {"model": task.initial})
    difference = gradient(objective, y, a_batch()) - gradient(plain, y, a_batch())
    assert float(difference["projector.weight"].abs().max()) > 1e-3
    assert torch.allclose(difference["classifier.weight"], torch.zeros(CLASSES, 4), atol=1e-6)
