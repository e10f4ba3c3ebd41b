"""FedPLVM, FedHEAL and FedRDN against numpy, another FINCH and cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import vmap

from bench.models.architectures.cnn import CNN
from bench.models.base import seeded_model
from methods.base import Batch, Samples, Task, Tree
from methods.fedavg import FedAvg
from methods.fedplvm import FedPLVM, prototypes_by_class
from methods.shared.finch import finch
from methods.shared.stacked_finch import clusters_by_class
from methods.wrappers.fedheal import FedHEAL
from methods.wrappers.fedrdn import FedRDN, Standardised
from tests.kit.tiny import (
    CLASSES,
    a_batch,
    batches_of,
    close,
    draw,
    equal,
    federation,
    head_task,
    log_softmax,
    mlp_task,
    nearby,
    reply,
    task_of,
    uneven_clients,
)

HEAL = FedHEAL(inner=FedAvg())
RDN = FedRDN(inner=FedAvg())


def partition_of(clusters: torch.Tensor) -> set[frozenset[int]]:
    return {
        frozenset(torch.nonzero(clusters == number)[:, 0].tolist()) for number in clusters.unique().tolist()
    }


# FedPLVM


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("seed", range(4))
def test_stacked_clusters_are_those_of_finch(count: int, seed: int) -> None:
    z = torch.randn(count, 3, generator=draw(seed))
    found = clusters_by_class(z, torch.zeros(count, dtype=torch.long), torch.ones(count, dtype=torch.bool))
    assert partition_of(found) == partition_of(finch(z))


def test_classes_are_clustered_apart_padding_is_left_out_and_clients_can_be_stacked() -> None:
    z = torch.randn(2, 30, 4, generator=draw(1))
    y = torch.randint(0, 3, (2, 30), generator=draw(2))
    real = torch.ones(2, 30, dtype=torch.bool)
    real[1, 20:] = False
    stacked = vmap(clusters_by_class)(z, y, real)
    for client in range(2):
        expected: set[frozenset[int]] = set()
        for label in range(3):
            at = torch.nonzero((y[client] == label) & real[client])[:, 0]
            own = finch(z[client, at])
            expected |= {frozenset(at[own == number].tolist()) for number in own.unique().tolist()}
        assert (
            partition_of(torch.where(real[client], stacked[client], -1))
            - {frozenset(torch.nonzero(~real[client])[:, 0].tolist())}
            == expected
        )


def test_local_prototypes_are_the_means_of_clusters() -> None:
    z = torch.randn(20, 4, generator=draw(3))
    y = torch.arange(20) % 2
    found = prototypes_by_class(Batch(z, y), CLASSES, places=9)
    for label in range(2):
        own = z[y == label]
        clusters = finch(own)
        means = torch.stack([own[clusters == number].mean(dim=0) for number in clusters.unique()])
        there = found["prototypes"][label, found["counts"][label] > 0]
        np.testing.assert_allclose(there, means, atol=1e-6)
    assert found["counts"].sum(dim=1).tolist() == [10, 10, 0]
    merged = prototypes_by_class(Batch(z, y), CLASSES, places=1)
    np.testing.assert_allclose(merged["prototypes"][0, 0], z[y == 0].mean(dim=0), atol=1e-6)


def test_the_terms_are_those_of_numpy() -> None:
    task, batch = mlp_task(), a_batch()
    params = nearby(task.initial, 1)
    centres, classes = torch.rand(3, 6, generator=draw(2)), torch.tensor([0, 0, 1])
    message = {"model": params, "centres": centres, "classes": classes}
    method = FedPLVM(lam=0.6, alpha=0.5, tau=0.2)
    z = task.encode(params, batch.x).detach().double().numpy()
    p = centres.double().numpy()

    def cosines(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
        return np.asarray(a @ b.T / lengths)

    s = np.maximum(cosines(z, p), 0.01) ** 0.5 / 0.2
    middle = cosines(z, np.stack([p[:2].mean(axis=0), p[2]]))
    terms = []
    for row, label in enumerate(batch.y.tolist()):
        if label == 2:
            terms.append(0.0)
            continue
        shares = np.exp(s[row]) / np.exp(s[row]).sum()
        terms.append(-np.log(shares[classes.numpy() == label].sum()) + 2 * (middle[row, label] - 1) ** 2)
    logits = task.logits(params, batch.x).detach().double().numpy()
    plain = -log_softmax(logits)[np.arange(len(batch.y)), batch.y.numpy()].mean()
    found = float(method.objective(task, {}, message)(params, batch))
    assert found == pytest.approx(plain + 0.6 * np.mean(terms), rel=1e-5)


def test_prototypes_are_clustered_again_at_the_server() -> None:
    run, _ = federation(FedPLVM(), mlp_task(), uneven_clients())
    run.advance()
    assert set(run.server["classes"].tolist()) <= {0, 1, 2}
    assert len(run.server["centres"]) == len(run.server["classes"])
    assert run.advance()["metrics"]["prototypes_per_class"] >= 1


# FedHEAL


def bias_only(*numbers: float) -> Tree:
    task = head_task(2)
    zero = {name: torch.zeros_like(leaf) for name, leaf in task.initial.items()}
    return Tree({**zero, "classifier.bias": torch.tensor(numbers, dtype=torch.float32)})


def healed(*models: Tree) -> dict[str, Any]:
    task = head_task(2)
    server = HEAL.server(task) | {"inner": {"model": bias_only(0, 0, 0)}}
    return HEAL.aggregate(task, server, [reply(k, 1, model=model) for k, model in enumerate(models)])


def test_each_entry_is_the_mean_over_the_clients_that_changed_it() -> None:
    """d = 5 and 5, so both weigh 1/2."""
    after = healed(bias_only(3, 4, 0), bias_only(0, 5, 0))
    np.testing.assert_allclose(after["inner"]["model"]["classifier.bias"], [3, 4.5, 0], atol=1e-6)


def test_weights_grow_with_the_distance() -> None:
    """d = 1 and 3: p = 1/2 + 0.4/4 and 1/2 + 0.4·3/4, so w = 0.6/1.4 and 0.8/1.4."""
    after = healed(bias_only(1, 0, 0), bias_only(3, 0, 0))
    np.testing.assert_allclose(after["weights"], [0.6, 0.8], atol=1e-6)
    expected = (0.6 * 1 + 0.8 * 3) / 1.4
    assert float(after["inner"]["model"]["classifier.bias"][0]) == pytest.approx(expected, rel=1e-5)
    again = HEAL.aggregate(
        head_task(2),
        after,
        [reply(k, 1, model=after["inner"]["model"] + bias_only(k + 1, 0, 0)) for k in range(2)],
    )
    np.testing.assert_allclose(again["changes"], [0.6 * 0.1 + 0.4 / 3, 0.6 * 0.3 + 0.4 * 2 / 3], atol=1e-5)


def test_entries_that_change_their_direction_are_set_back() -> None:
    task, data = head_task(1), uneven_clients()[0]
    message = {"model": task.initial}
    first, state = HEAL.local(task, HEAL.client(task), message, batches_of(data))
    plain, _ = FedAvg().local(task, {}, message, batches_of(data))
    assert equal(first["model"], plain["model"])
    assert float(state["rounds"]) == 1
    falling = task.initial.map(lambda x, y: (x - y >= 0).float(), plain["model"])
    assert equal(state["falls"], falling)
    again, state = HEAL.local(task, state, message, batches_of(data))
    assert equal(again["model"], plain["model"])
    turned = {**state, "falls": state["falls"].map(lambda share: 1 - share)}
    back, _ = HEAL.local(task, turned, message, batches_of(data))
    assert equal(back["model"], task.initial)


# FedRDN


def images() -> list[Samples]:
    made = []
    for k, count in enumerate((20, 9)):
        x = (k + 1) * torch.randn(count, 3, 8, 8, generator=draw(k)) + k
        made.append(Samples(x, torch.arange(count) % CLASSES))
    return made


def image_task() -> Task:
    model = seeded_model(CNN(channels=(2, 3), features=6, embedding=4, grid=2), (3, 8, 8), CLASSES, seed=0)
    return replace(task_of(model, 2), input_shape=(3, 8, 8))


def test_statistics_are_means_over_images_and_reach_every_client() -> None:
    clients = images()
    run, host = federation(RDN, image_task(), clients)
    record = run.prelude()
    assert record["bytes_up"] == 2 * 2 * 3 * 4
    assert record["bytes_down"] == 2 * 2 * 2 * 3 * 4
    for k, (x, _) in enumerate(clients):
        pixels = x.double().numpy().reshape(len(x), 3, -1)
        np.testing.assert_allclose(host.state(k)["own"]["mean"], pixels.mean(axis=(0, 2)), atol=1e-5)
        stds = pixels.std(axis=2, ddof=1).mean(axis=0)
        np.testing.assert_allclose(host.state(1 - k)["stds"][k], stds, atol=1e-5)
    np.testing.assert_allclose(run.server["mean"], host.state(0)["means"].mean(dim=0), atol=1e-6)


def test_training_images_have_the_statistics_of_some_client_and_others_their_own() -> None:
    clients, task = images(), image_task()
    run, host = federation(RDN, task, clients)
    run.prelude()
    state, data = host.state(0), clients[0]
    batches = Standardised(task, state, batches_of(data))
    [batch] = list(batches)
    ways = [(data.x - state["means"][j][:, None, None]) / state["stds"][j][:, None, None] for j in range(2)]
    chosen = [
        next(j for j in range(2) if torch.allclose(batch.x[i], ways[j][i], atol=1e-6))
        for i in range(len(data.y))
    ]
    assert set(chosen) == {0, 1}
    [whole] = list(batches.once())
    torch.testing.assert_close(whole.x, ways[0])
    assert torch.equal(whole.y, data.y) and batches.samples == len(data.y)


def test_the_global_model_and_a_client_standardise_differently() -> None:
    clients, task = images(), image_task()
    run, host = federation(RDN, task, clients)
    run.prelude()
    x, model = clients[0].x, run.server["inner"]["model"]
    for state, mean, std in (
        (None, run.server["mean"], run.server["std"]),
        (host.state(1), host.state(0)["means"][1], host.state(0)["stds"][1]),
    ):
        expected = task.logits(model, (x - mean[:, None, None]) / std[:, None, None])
        torch.testing.assert_close(RDN.predict(task, run.server, state, x), expected)


def test_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^standardises the channels of images"):
        RDN.check(mlp_task())


def test_the_same_seed_draws_the_same_statistics() -> None:
    ends = []
    for _ in range(2):
        run, _ = federation(RDN, image_task(), images())
        run.prelude()
        run.advance()
        ends.append(run.server["inner"]["model"])
    assert equal(*ends) and not close(ends[0], image_task().initial, tolerance=1e-4)
