"""Fed3R, CCVR and FedPFT against numpy, scikit-learn and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from bench.engine.federation import Federation
from methods.base import FedAlgorithm, Samples, State, Task
from methods.ccvr import CCVR
from methods.core.tree import size_in_bytes
from methods.fed3r import Fed3R
from methods.fedavg import FedAvg
from methods.fedpft import FedPFT
from methods.shared.class_moments import add_moments, class_moments, gaussians, moments_of
from methods.shared.mixtures import Covariance, Mixture, drawn, expectation_maximisation, fitted, maximised
from methods.shared.virtual import normal_samples
from tests.kit.tiny import (
    CLASSES,
    WIDTH,
    batches_of,
    draw,
    equal,
    federation,
    head_task,
    mlp_task,
    samples,
    server_after,
    uneven_clients,
)


def after_prelude(method: FedAlgorithm, clients: list[Samples]) -> tuple[Federation, dict[str, Any]]:
    run, _ = federation(method, head_task(len(clients)), clients)
    return run, run.prelude()


def pooled(clients: list[Samples]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    x, y = (torch.cat(parts) for parts in zip(*clients, strict=True))
    return x.double().numpy(), y.numpy()


def one_class_each() -> list[Samples]:
    """Far from each other: what FedAvg's classifier cannot learn from one class at a time."""
    made = []
    for label in range(CLASSES):
        noise = 0.3 * torch.randn(30, WIDTH, generator=draw(label))
        made.append(Samples(noise + torch.eye(CLASSES, WIDTH)[label], torch.full((30,), label)))
    return made


# Fed3R


@pytest.mark.parametrize("normalise", [False, True])
def test_fed3r_is_central_ridge_regression(normalise: bool) -> None:
    clients = uneven_clients()
    run, _ = after_prelude(Fed3R(lam=0.3, normalise=normalise), clients)
    x, y = pooled(clients)
    x = np.hstack([x, np.ones((len(x), 1))])
    # Least squares on samples extended by √λ·I, another way to the same solution.
    rows = np.vstack([x, np.sqrt(0.3) * np.eye(WIDTH + 1)])
    targets = np.vstack([np.eye(CLASSES)[y], np.zeros((WIDTH + 1, CLASSES))])
    expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
    if normalise:
        expected = expected / np.linalg.norm(expected[:-1], axis=0)
    np.testing.assert_allclose(run.server["weights"].numpy(), expected, rtol=0, atol=1e-8)
    scores = Fed3R().predict(head_task(), run.server, None, clients[0].x)
    np.testing.assert_allclose(scores, x[:7] @ expected, rtol=0, atol=1e-8)


def test_fed3r_gives_a_class_without_samples_no_weights() -> None:
    run, _ = after_prelude(Fed3R(), [samples([0, 1, 1, 0, 0], 3)])
    assert run.server["weights"][:, 2].tolist() == [0.0] * (WIDTH + 1)
    assert bool(torch.isfinite(run.server["weights"]).all())


def test_random_features_approximate_the_gaussian_kernel() -> None:
    task, x = head_task(), samples([0] * 8, 4).x
    z = Fed3R(random_features=20_000, bandwidth=2.0).features(task, x)[:, :-1]
    distances = np.square(x.numpy()[:, None] - x.numpy()[None]).sum(axis=-1)
    np.testing.assert_allclose(z @ z.T, np.exp(-distances / (2 * 2.0**2)), atol=0.03)


@pytest.mark.parametrize("method", [Fed3R(), FedPFT(server_steps=5)], ids=["fed3r", "fedpft"])
def test_nothing_is_sent_and_nothing_changes_in_the_rounds(method: FedAlgorithm) -> None:
    run, first = after_prelude(method, uneven_clients())
    assert first["bytes_up"] > 0 and first["bytes_down"] == 0
    before = run.server
    record = run.advance()
    assert record["bytes_up"] == record["bytes_down"] == 0
    assert run.server is before


def test_fed3r_sends_a_triangle_and_the_products_in_double_precision() -> None:
    _, record = after_prelude(Fed3R(), uneven_clients())
    numbers = (WIDTH + 1) * (WIDTH + 2) // 2 + (WIDTH + 1) * CLASSES
    assert record["bytes_up"] == 3 * 8 * numbers


@pytest.mark.parametrize("method", [Fed3R(), FedPFT()], ids=["fed3r", "fedpft"])
def test_trained_features_are_refused(method: FedAlgorithm) -> None:
    with pytest.raises(ValueError, match=r"^works on features that are not trained"):
        method.check(mlp_task())


# CCVR


def summed(task: Task, clients: list[Samples]) -> State:
    sums: State = {}
    for each in clients:
        part = class_moments(task, task.initial, batches_of(each), fewest=1)
        sums = add_moments(sums, CLASSES, torch.arange(CLASSES), part)
    return sums


def test_class_gaussians_are_those_of_the_pooled_features() -> None:
    clients = uneven_clients()
    known, means, covariances = gaussians(summed(head_task(), clients))
    x, y = pooled(clients)
    assert known.tolist() == [0, 1, 2]
    for label in range(CLASSES):
        members = x[y == label]
        np.testing.assert_allclose(means[label], members.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(covariances[label], np.cov(members.T), atol=1e-5)


def test_a_class_of_one_sample_is_not_described() -> None:
    data = samples([0, 0, 0, 1], 5)
    task = head_task()
    part = class_moments(task, task.initial, batches_of(data), fewest=2)
    assert part["counts"].tolist() == [3, 0, 0]
    assert not part["means"][1:].any() and not part["covariances"][1:].any()


def test_virtual_features_have_the_moments_of_the_gaussian() -> None:
    base = torch.randn(WIDTH, WIDTH, dtype=torch.float64, generator=draw(1))
    mean, covariance = torch.arange(WIDTH, dtype=torch.float64), base @ base.T
    x = normal_samples(mean, covariance, 60_000, draw(2)).numpy()
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.03 * float(covariance.max()))


@pytest.mark.parametrize("task", [head_task(), mlp_task()], ids=["frozen", "trained"])
def test_ccvr_trains_the_model_of_fedavg(task: Task) -> None:
    models = []
    for method in (CCVR(server_steps=3), FedAvg()):
        run, _ = federation(method, task, uneven_clients())
        if run.has_prelude:
            run.prelude()
        sent = [run.advance()["bytes_up"] for _ in range(2)]
        models.append((run.server["model"], sent))
    assert equal(models[0][0], models[1][0])
    statistics = 4 * 3 * CLASSES * (1 + 6 + 6 * 6)  # three clients, six hidden units, single precision
    extra = 0 if not task.has_trainable_embeddings else statistics
    assert models[0][1] == [each + extra for each in models[1][1]]


def test_calibration_mends_a_classifier_of_clients_with_one_class_each() -> None:
    clients = one_class_each()
    task = head_task()
    run, _ = federation(CCVR(server_steps=300, server_lr=0.05), task, clients, epochs=20)
    run.prelude()
    run.advance()
    x, y = (torch.cat(parts) for parts in zip(*clients, strict=True))
    right = {
        name: float((method.predict(task, run.server, None, x).argmax(dim=1) == y).float().mean())
        for name, method in {"calibrated": CCVR(), "averaged": CCVR(prediction="averaged")}.items()
    }
    assert right["calibrated"] > 0.9 and right["calibrated"] > right["averaged"]
    assert run.evaluate(personal=False)["metrics"].keys() == {"avg_by_averaged"}


def test_without_steps_the_calibrated_classifier_is_the_averaged_one() -> None:
    frozen = server_after(1, CCVR(server_steps=0), head_task(), uneven_clients())
    assert equal(frozen["calibrated"], frozen["model"])


# FedPFT


def two_heaps(seed: int = 0) -> torch.Tensor:
    around = torch.randn(80, 3, dtype=torch.float64, generator=draw(seed))
    return around * torch.tensor([1.0, 0.5, 2.0]) + 4.0 * (torch.arange(80) % 2)[:, None]


KINDS: dict[Covariance, Any] = {"spherical": "spherical", "diagonal": "diag", "full": "full"}


@pytest.mark.parametrize("kind", KINDS)
def test_mixtures_are_those_of_scikit_learn(kind: Covariance) -> None:
    x = two_heaps()
    start = expectation_maximisation(x, 3, kind, 0, 1e-6, draw(1))
    found = expectation_maximisation(x, 3, kind, 5, 1e-6, draw(1))
    inverse = start.covariances.inverse() if kind == "full" else 1 / start.covariances
    other = GaussianMixture(
        3,
        covariance_type=KINDS[kind],
        tol=0.0,
        max_iter=5,
        reg_covar=1e-6,
        weights_init=start.weights.numpy(),
        means_init=start.means.numpy(),
        precisions_init=inverse.numpy(),
    )
    with pytest.warns(UserWarning, match="did not converge"):
        other.fit(x.numpy())
    for ours, theirs in zip(found, (other.weights_, other.means_, other.covariances_), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_one_component_has_the_moments_of_the_samples() -> None:
    x = two_heaps()
    mixture = fitted(x, 1, "full", 5, 1e-9, draw(0))
    np.testing.assert_allclose(mixture.means[0], x.mean(dim=0), atol=1e-12)
    np.testing.assert_allclose(mixture.covariances[0], np.cov(x.T, bias=True), atol=1e-8)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_every_component_stands_for_two_samples_or_more(count: int) -> None:
    x = 10 * torch.randn(count, 3, dtype=torch.float64, generator=draw(count))
    mixture = fitted(x, 50, "diagonal", 20, 1e-6, draw(0))
    assert float(mixture.weights.min()) * count >= 2 - 1e-9
    assert torch.cdist(mixture.means, x).min() > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_moments_of_the_mixture(kind: Covariance) -> None:
    x = two_heaps()
    labels = torch.nn.functional.one_hot(torch.arange(80) % 2, 2).double()
    mixture = maximised(x, labels, kind, 1e-6)
    made = drawn(mixture, 40_000, draw(3)).numpy()
    np.testing.assert_allclose(made.mean(axis=0), x.mean(dim=0), atol=0.06)
    if kind == "full":
        np.testing.assert_allclose(np.cov(made.T), np.cov(x.T, bias=True), atol=0.2)
    rows = np.abs(made - mixture.means[0].numpy()).sum(axis=1)
    near = rows < np.abs(made - mixture.means[1].numpy()).sum(axis=1)
    assert near.mean() == pytest.approx(0.5, abs=0.02)


def test_fedpft_learns_from_clients_with_one_class_each_and_sends_mixtures_alone() -> None:
    run, record = after_prelude(FedPFT(components=2, server_lr=0.05, server_steps=300), one_class_each())
    x, y = (torch.cat(parts) for parts in zip(*one_class_each(), strict=True))
    predicted = FedPFT().predict(head_task(), run.server, None, x).argmax(dim=1)
    assert float((predicted == y).float().mean()) > 0.9
    mixture = Mixture(torch.zeros(2), torch.zeros(2, WIDTH), torch.zeros(2, WIDTH))
    assert record["bytes_up"] == 3 * (size_in_bytes(mixture._asdict()) + 8 * (1 + 1 + 2))


@pytest.mark.parametrize("fewest", [1, 3])
def test_moments_class_by_class_are_those_with_members_marked(fewest: int) -> None:
    for each in uneven_clients():
        task = head_task(each.x.shape[1])
        dense = class_moments(task, task.initial, batches_of(each), fewest)
        shown = torch.nonzero(each.y.bincount(minlength=CLASSES) >= fewest)[:, 0]
        found = moments_of(each.x, each.y, shown)
        assert torch.equal(torch.nonzero(dense["counts"])[:, 0], shown)
        for key, value in found.items():
            assert torch.allclose(value, dense[key][shown], rtol=0, atol=1e-7), key
