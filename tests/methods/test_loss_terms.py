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
    cnn_task,
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
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def plain_loss(task: Task, y: Tree, batch: Batch) -> float:
    p = softmax(task.logits(y, batch.x).detach().double().numpy())
    return float(-np.log(p[np.arange(len(batch.y)), batch.y.numpy()]).mean())


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


def test_the_term_is_mu_log_2_before_the_first_participation() -> None:
    task, batch = cnn_task(), a_batch((1, 8, 8))
    x, y, unused = (nearby(task.initial, seed) for seed in (1, 2, 3))
    value = Moon(mu=0.7).objective(task, moon_state(task, unused, False), {"model": x})(y, batch)
    assert float(value) == pytest.approx(plain_loss(task, y, batch) + 0.7 * math.log(2), rel=1e-5)


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
