"""FPL and the clustering of its prototypes."""

import numpy as np
import pytest
import torch
from torch import Tensor

from methods.base import Batch, Tree
from methods.fedavg import FedAvg
from methods.fpl import FPL
from methods.shared.finch import cluster_means, finch
from tests.kit.tiny import (
    CLASSES,
    HIDDEN,
    close,
    frozen_task,
    gradient,
    mlp_task,
    nearby,
    reply,
    samples,
)


def at_angles(*degrees: float) -> Tensor:
    """Points on the unit circle."""
    angles = torch.tensor(degrees).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


# Clustering


def test_clusters_worked_out_by_hand() -> None:
    """Neighbours: 0→10, 10→0, 25→10 and 90↔100, 180↔184. The three pairs' means 11.7°, 95° and 182° have the
    neighbours 95, 11.7 and 95, so that the next partition would be one cluster."""
    assert finch(at_angles(0, 10, 25, 90, 100, 180, 184)).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_clusters_of_clusters_are_merged_until_one_would_be_left() -> None:
    """Four pairs; those around 5° and 25°, and those around 185° and 205°, are each other's neighbours."""
    assert finch(at_angles(4, 6, 24, 26, 184, 186, 204, 206)).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_points_that_all_link_are_one_cluster() -> None:
    assert finch(at_angles(0, 10, 30)).tolist() == [0, 0, 0]
    assert finch(at_angles(7)).tolist() == [0]


def test_the_length_of_a_point_does_not_matter_to_its_cluster_but_to_its_mean() -> None:
    points = at_angles(0, 10, 90, 100) * torch.tensor([1.0, 9.0, 2.0, 0.1])[:, None]
    clusters = finch(points)
    assert clusters.tolist() == [0, 0, 1, 1]
    expected = points.numpy().reshape(2, 2, 2).mean(axis=1)
    np.testing.assert_allclose(cluster_means(points, clusters).numpy(), expected, rtol=1e-6)


# The clients' terms


def a_message(task_model: Tree, classes: list[int]) -> dict[str, object]:
    centres = torch.randn(len(classes), HIDDEN, generator=torch.Generator().manual_seed(3))
    return {"model": task_model, "centres": centres, "classes": torch.tensor(classes)}


def test_samples_without_a_prototype_have_their_plain_gradient() -> None:
    task = mlp_task()
    ones = samples([1, 1, 1], seed=1)
    batch, y = Batch(ones.x, ones.y), nearby(task.initial, 1)
    ours = gradient(FPL().objective(task, {}, a_message(task.initial, [0, 2])), y, batch)
    plain = gradient(FedAvg().objective(task, {}, {}), y, batch)
    assert close(ours, plain, tolerance=1e-7)


# The server


def test_the_servers_prototypes_are_cluster_means_of_those_who_hold_the_class() -> None:
    task = mlp_task(clients=4)
    angles = [[0.0, 90.0, 0.0], [10.0, 0.0, 0.0], [90.0, 95.0, 0.0], [95.0, 0.0, 0.0]]
    held = [[True, True, False], [True, False, False], [True, True, False], [True, False, False]]
    replies = [
        reply(k, 1, model=task.initial, means=at_angles(*angles[k]), held=torch.tensor(held[k]))
        for k in range(4)
    ]
    server = FPL().aggregate(task, FPL().server(task), replies)
    assert server["classes"].tolist() == [0, 0, 1]
    expected = [at_angles(0, 10).mean(dim=0), at_angles(90, 95).mean(dim=0), at_angles(90, 95).mean(dim=0)]
    np.testing.assert_allclose(server["centres"].numpy(), torch.stack(expected).numpy(), atol=1e-6)
    assert FPL().observe(task, server) == {"prototypes_per_class": 1.5}
    assert len(held[0]) == CLASSES


def test_a_frozen_encoder_is_refused() -> None:
    with pytest.raises(ValueError, match="frozen encoder"):
        FPL().check(frozen_task())
