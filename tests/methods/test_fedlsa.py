"""FedLSA: the anchors, the two losses and the rows of the ablation."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from methods.base import Batch, State, Task, Tree
from methods.core.batches import Samples
from methods.fedavg import FedAvg
from methods.fedlsa import FedLSA, anchors_of, separation_loss
from methods.modules.split_model import SplitModel
from tests.kit.tiny import (
    CLASSES,
    close,
    cnn_task,
    equal,
    federation,
    frozen_task,
    nearby,
    reply,
    samples,
    server_after,
    task_of,
)

IMAGE = (1, 8, 8)
EMBEDDING = 4
QUICK: dict[str, Any] = {"server_steps": 5}


def clients() -> list[Samples]:
    return [
        samples([0, 1, 2, 0, 1, 2, 1], 1, IMAGE),
        samples([2, 2, 0, 1], 2, IMAGE),
        samples([0, 1], 3, IMAGE),
    ]


def nor(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def simplex(classes: int) -> Tensor:
    """Unit vectors with the same angle between any two of them."""
    centred = torch.eye(classes, dtype=torch.float64) - 1 / classes
    return centred / centred.norm(dim=1, keepdim=True)


# The anchors


def test_separation_of_a_simplex_of_ten_classes() -> None:
    anchors = simplex(10)
    assert float(anchors[0] @ anchors[1]) == pytest.approx(-1 / 9)
    assert float(separation_loss(anchors, tau=0.1)) == pytest.approx(-1.1111, abs=1e-4)


def test_separation_is_that_of_numpy() -> None:
    anchors = nor(np.random.default_rng(0).normal(size=(5, 3)))
    terms = [
        math.log(sum(math.exp(anchors[i] @ anchors[j] / 0.2) for j in range(5) if j != i) / 4)
        for i in range(5)
    ]
    assert float(separation_loss(torch.from_numpy(anchors), tau=0.2)) == pytest.approx(np.mean(terms))


def test_anchors_are_the_normalised_output_of_the_network() -> None:
    task = cnn_task()
    maker = FedLSA().anchor_maker(task)
    R, W1, b1, W2, b2 = (maker[name].double().numpy() for name in ("R", "W1", "b1", "W2", "b2"))
    assert R.shape == (CLASSES, task.model.feature_size)
    assert W1.shape == (task.model.feature_size, task.model.feature_size)
    expected = nor(np.maximum(R @ W1.T + b1, 0) @ W2.T + b2)
    np.testing.assert_allclose(anchors_of(maker).numpy(), expected, atol=1e-6)


def test_anchors_have_length_1_after_every_round() -> None:
    run, _ = federation(FedLSA(**QUICK), cnn_task(), clients())
    for _ in range(3):
        run.advance()
        assert torch.allclose(run.server["anchors"].norm(dim=1), torch.ones(CLASSES), atol=1e-6)


def test_the_server_trains_the_anchors_and_leaves_the_model_alone() -> None:
    task = cnn_task()
    method = FedLSA(**QUICK)
    server = method.server(task)
    models = [nearby(task.initial, k) for k in range(3)]
    replies = [
        reply(k, size, model=model) for k, (size, model) in enumerate(zip((7, 4, 2), models, strict=True))
    ]
    after = method.aggregate(task, server, replies)
    assert equal(after["model"], FedAvg().average(replies))
    for name in ("R", "W1", "b1", "W2", "b2"):
        assert not torch.equal(after["anchor_maker"][name], server["anchor_maker"][name])
    assert torch.allclose(after["anchors"], anchors_of(after["anchor_maker"]))


def test_anchors_are_kept_over_the_rounds_and_descend_on_their_loss() -> None:
    task = cnn_task()
    method = FedLSA(server_steps=60, alpha=0.4, tau=0.1)

    def loss(anchors: Tensor) -> float:
        logits = task.classify(task.initial, anchors).double().numpy()
        ace = -log_softmax(logits)[np.arange(CLASSES), np.arange(CLASSES)].mean()
        return float(ace + 0.4 * float(separation_loss(anchors, 0.1)))

    start = FedLSA().anchor_maker(task)
    first = method.renewed_anchors(task, task.initial, start)
    second = method.renewed_anchors(task, task.initial, first["anchor_maker"])
    assert loss(second["anchors"]) < loss(first["anchors"]) < loss(anchors_of(start)) - 0.1


def test_the_first_round_has_anchors_trained_against_the_initial_classifier() -> None:
    task = cnn_task()
    untrained, trained = (FedLSA(server_steps=steps).server(task)["anchors"] for steps in (0, 100))
    assert torch.allclose(untrained, anchors_of(FedLSA().anchor_maker(task)))
    assert FedLSA().anchor_cross_entropy(task, task.initial, trained) < FedLSA().anchor_cross_entropy(
        task, task.initial, untrained
    )


def test_anchors_are_the_same_for_the_same_seed() -> None:
    assert equal(FedLSA().anchor_maker(cnn_task()), FedLSA().anchor_maker(cnn_task()))


# The clients


def parts_in_numpy(task: Task, y: Tree, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """h and ϕ(h)."""
    h = nor(task.project(y, task.encode(y, x)).detach().double().numpy())
    weight, bias = (y[f"classifier.{name}"].double().numpy() for name in ("weight", "bias"))
    return h, h @ weight.T + bias


def objective(method: FedLSA, task: Task, y: Tree, server: State, data: Samples) -> float:
    message = method.down(task, server, 0)
    return float(method.objective(task, {}, message)(y, Batch(data.x, data.y)))


def test_the_clients_loss_is_that_of_numpy() -> None:
    task, data = cnn_task(), clients()[0]
    method = FedLSA(lam=0.3, tau=0.2, **QUICK)
    server = method.server(task)
    y, labels = nearby(task.initial, 1), data.y.numpy()
    h, logits = parts_in_numpy(task, y, data.x)
    rows = np.arange(len(labels))
    classified = -log_softmax(logits)[rows, labels].mean()
    compact = -log_softmax(h @ server["anchors"].double().numpy().T / 0.2)[rows, labels].mean()
    assert objective(method, task, y, server, data) == pytest.approx(classified + 0.3 * compact, rel=1e-5)


def test_prediction_is_by_the_classifier_on_the_sphere() -> None:
    task, data = cnn_task(), clients()[0]
    method = FedLSA(**QUICK)
    server = method.server(task) | {"model": nearby(task.initial, 1)}
    _, logits = parts_in_numpy(task, server["model"], data.x)
    np.testing.assert_allclose(method.predict(task, server, None, data.x).detach().numpy(), logits, atol=1e-5)
    assert torch.allclose(FedLSA().embed(task, server["model"], data.x).norm(dim=1), torch.ones(7), atol=1e-6)


# The ablation


class _OnSphere(SplitModel):
    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(nn.functional.normalize(self.projector(self.encoder(x)), dim=-1))


def test_neither_loss_is_fedavg_with_the_classifier_on_the_sphere() -> None:
    task = cnn_task()
    model = task.model
    on_sphere = _OnSphere(
        model.encoder,
        model.projector,
        model.classifier,
        feature_size=model.feature_size,
        embedding_size=model.embedding_size,
    )
    neither = FedLSA(compactness=False, separation=False)
    ours = server_after(2, neither, task, clients())
    theirs = server_after(2, FedAvg(), task_of(on_sphere), clients())
    assert list(ours) == ["model"]
    assert close(ours["model"], theirs["model"], tolerance=1e-6)


def test_without_separation_alpha_has_no_effect() -> None:
    task = cnn_task()
    with_it, without = (
        [FedLSA(alpha=alpha, separation=separation, **QUICK).server(task)["anchors"] for alpha in (0.02, 0.9)]
        for separation in (True, False)
    )
    assert torch.equal(*without)
    assert not torch.allclose(*with_it)


def test_without_compactness_h_is_pulled_to_its_anchor() -> None:
    task, data = cnn_task(), clients()[0]
    method = FedLSA(lam=0.3, compactness=False, **QUICK)
    server = method.server(task)
    y, labels = nearby(task.initial, 1), data.y.numpy()
    h, logits = parts_in_numpy(task, y, data.x)
    classified = -log_softmax(logits)[np.arange(len(labels)), labels].mean()
    pull = ((h - server["anchors"].double().numpy()[labels]) ** 2).sum(axis=1).mean()
    assert objective(method, task, y, server, data) == pytest.approx(classified + 0.3 * pull, rel=1e-5)


@pytest.mark.parametrize("compactness", [True, False])
@pytest.mark.parametrize("separation", [True, False])
def test_bytes_are_the_model_and_where_used_the_anchors(compactness: bool, separation: bool) -> None:
    task = cnn_task()
    run, _ = federation(FedLSA(compactness=compactness, separation=separation, **QUICK), task, clients())
    record = run.advance()
    model = 4 * sum(leaf.numel() for leaf in task.initial.values())
    anchors = 4 * CLASSES * EMBEDDING if compactness or separation else 0
    assert record["bytes_up"] == 3 * model
    assert record["bytes_down"] == 3 * (model + anchors)


def test_the_losses_of_the_anchors_are_recorded() -> None:
    run, _ = federation(FedLSA(**QUICK), cnn_task(), clients())
    metrics = run.advance()["metrics"]
    assert metrics["anchor_separation"] == pytest.approx(float(separation_loss(run.server["anchors"], 0.1)))
    assert sorted(metrics) == ["anchor_classification", "anchor_separation"]


@pytest.mark.parametrize(
    "wrong", [{"lam": -0.1}, {"alpha": -1}, {"tau": 0}, {"server_steps": -1}, {"server_lr": 0}]
)
def test_hyperparameters_out_of_bounds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FedLSA(**wrong)


def test_a_model_without_anything_before_the_classifier_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing before the classifier is trained"):
        FedLSA().check(frozen_task())
    FedLSA(compactness=False, separation=False).check(frozen_task())
