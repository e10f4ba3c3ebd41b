"""Features that a server draws from what clients have told about theirs, and classifiers trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
from torch import Generator, Tensor

from methods.base import Batch, Optimiser, Samples, Task, Tree, cross_entropy, train_at_server


def symmetric_root(covariance: Tensor) -> Tensor:
    """Σ^½ = V√λVᵀ, which unlike V does not jump when Σ changes a little.

    Eigenvalues below a millionth of the largest, which may be rounding alone, count as 0.
    """
    values, vectors = torch.linalg.eigh(covariance)
    kept = torch.where(values > 1e-6 * values[-1], values, 0.0)
    root: Tensor = (vectors * kept.sqrt()) @ vectors.T
    return root


def normal_samples(mean: Tensor, covariance: Tensor, count: int, draw: Generator) -> Tensor:
    """μ + εΣ^½ with ε ~ N(0, I), drawn in single precision."""
    epsilon = torch.randn(count, len(mean), generator=draw).to(mean)
    return mean + epsilon @ symmetric_root(covariance)


def trained_classifier(
    task: Task, model: Tree, virtual: Samples, steps: int, size: int, optimiser: Optimiser, draw: Generator
) -> Tree:
    """The classifier after so many steps on mini-batches of features, beginning at the model's.

    The mini-batches go through all features in a random order, then again in another.
    """

    def loss(params: Tree, batch: Batch) -> Tensor:
        return cross_entropy(task.classify(model | params, batch.x), batch)

    own = task.trained(model.part("classifier"))
    return train_at_server(own, loss, islice(_batches(virtual, size, draw), steps), optimiser)


def _batches(samples: Samples, size: int, draw: Generator) -> Iterator[Batch]:
    while True:
        order = torch.randperm(len(samples.y), generator=draw).to(samples.y.device)
        for step, at in enumerate(order.split(size)):
            yield Batch(samples.x[at], samples.y[at], key=step)
