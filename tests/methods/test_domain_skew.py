"""FedPLVM's clusters against another FINCH, and FedRDN's statistics against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import vmap

from bench.models.architectures.cnn import CNN
from bench.models.base import seeded_model
from methods.base import Batch, Samples, Task
from methods.fedavg import FedAvg
from methods.fedplvm import prototypes_by_class
from methods.shared.finch import finch
from methods.shared.stacked_finch import clusters_by_class
from methods.wrappers.fedrdn import FedRDN, Standardised
from tests.kit.tiny import (
    CLASSES,
    batches_of,
    draw,
    federation,
    mlp_task,
    task_of,
)

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


def test_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^standardises the channels of images"):
        RDN.check(mlp_task())
