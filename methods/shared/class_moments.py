"""Counts, means and covariances of each class's features, under padding and on stacks of clients too."""

from __future__ import annotations

import torch
from torch import Tensor

from methods.base import Batches, Message, State, Task, Tree


def class_moments(task: Task, params: Tree, batches: Batches, fewest: int) -> Message:
    """Per class n, μ and Σ (1/n) of what the classifier works on; zeros for classes of fewer samples."""
    counts = totals = squares = torch.zeros((), dtype=torch.float64, device=task.device)
    with task.evaluation():
        for batch in batches.once():
            z = task.embed(params, batch.x).double()
            members = (batch.y == torch.arange(task.classes, device=batch.y.device)[:, None]).double()
            members = members * batch.real
            counts = counts + members.sum(dim=1)
            totals = totals + members @ z
            squares = squares + (members[:, :, None] * z).mT @ z
        counts = torch.where(counts >= fewest, counts, 0.0)
        shown, n = (counts > 0).double()[:, None], counts.clamp(min=1)[:, None]
        means = shown * totals / n
        covariances = shown[:, :, None] * squares / n[:, :, None] - outer(means)
    return {"counts": counts.float(), "means": means.float(), "covariances": covariances.float()}


def moments_of(z: Tensor, y: Tensor, classes: Tensor) -> Message:
    """The same of these classes alone, from all samples of one client: no product for those of others."""
    counts, means, covariances = [], [], []
    for label in classes.tolist():
        own = z[y == label].double()
        mean = own.sum(dim=0) / len(own)
        counts.append(len(own))
        means.append(mean)
        covariances.append(own.T @ own / len(own) - mean[:, None] * mean)
    width = z.shape[1]
    return {
        "counts": torch.tensor(counts, dtype=torch.float32, device=z.device),
        "means": torch.stack(means).float() if means else z.new_zeros(0, width),
        "covariances": torch.stack(covariances).float() if means else z.new_zeros(0, width, width),
    }


def add_moments(sums: State, classes: int, at: Tensor, part: Message) -> State:
    """Σn, Σnμ and Σn(Σ + μμᵀ) per class, with one more client's moments of the classes `at`."""
    n, means, covariances = (part[key].double() for key in ("counts", "means", "covariances"))
    terms = {
        "counts": n,
        "totals": n[:, None] * means,
        "squares": n[:, None, None] * (covariances + outer(means)),
    }
    blank = {key: term.new_zeros(classes, *term.shape[1:]) for key, term in terms.items()}
    return {key: (sums or blank)[key].index_add(0, at, term) for key, term in terms.items()}


def gaussians(sums: State) -> tuple[Tensor, Tensor, Tensor]:
    """The classes that have samples, their means, and their covariances without bias (1/(N − 1))."""
    known = torch.nonzero(sums["counts"])[:, 0]
    n = sums["counts"][known]
    means = sums["totals"][known] / n[:, None]
    scatter = sums["squares"][known] - n[:, None, None] * outer(means)
    return known, means, scatter / (n - 1).clamp(min=1)[:, None, None]


def outer(vectors: Tensor) -> Tensor:
    """vvᵀ, row by row."""
    return vectors[:, :, None] * vectors[:, None, :]
