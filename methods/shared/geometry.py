"""The shape of classes in a space of embeddings: means, covariances, and their principal axes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """Counts, means and covariances (with 1/n) of some groups of samples."""

    counts: Tensor
    means: Tensor
    covariances: Tensor


class Axes(NamedTuple):
    """Principal axes of each class, the longest first."""

    eigenvalues: Tensor
    """classes × axes."""
    eigenvectors: Tensor
    """classes × dimensions × axes."""


def moments(x: Tensor, y: Tensor, classes: Tensor) -> Moments:
    """The moments of the samples of each of these classes, in double precision."""
    shapes = (len(classes),), (len(classes), x.shape[1]), (len(classes), x.shape[1], x.shape[1])
    found = Moments(*(x.new_empty(shape, dtype=torch.float64) for shape in shapes))
    for label, count, mean, covariance in zip(classes, *found, strict=True):
        members = x[y == label].double()
        count.fill_(len(members))
        torch.mean(members, dim=0, out=mean)
        centred = members - mean
        torch.mm(centred.T, centred, out=covariance).div_(len(members))
    return found


def no_moments(groups: int, width: int, device: torch.device) -> Moments:
    """The moments of groups that have no samples yet."""
    shapes = (groups,), (groups, width), (groups, width, width)
    return Moments(*(torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes))


def pooled(a: Moments, b: Moments) -> Moments:
    """The moments of the union of two sets of samples, group by group; every group has a sample in `b`."""
    counts = a.counts + b.counts
    share = (b.counts / counts)[:, None]
    apart = b.means - a.means
    own, other = (1 - share)[:, :, None], share[:, :, None]
    covariances = own * a.covariances
    covariances += other * b.covariances
    covariances += own * other * apart[:, :, None] * apart[:, None, :]
    return Moments(counts, a.means + share * apart, covariances)


def with_more(whole: Moments, groups: Tensor, part: Moments) -> Moments:
    """The moments of `whole` after more samples of some groups.

    Group by group, as covariances of all groups at once would pass through memory many times.
    """
    found = Moments(*(torch.empty_like(each) for each in whole))
    places = {group: place for place, group in enumerate(groups.tolist())}
    for group, count in enumerate(whole.counts.tolist()):
        now = Moments(*(each[group : group + 1] for each in whole))
        if group in places:
            more = Moments(*(each[places[group] :][:1] for each in part))
            now = pooled(now, more) if count else more
        for each, of_group in zip(found, now, strict=True):
            each[group] = of_group[0]
    return found


def principal_axes(
    covariances: Tensor, ridge: float = 0.0, top_k: int | None = None, counts: Tensor | None = None
) -> Axes:
    """The axes of each covariance; `counts`: of how many samples it is, if known.

    The covariance of N samples has at most N − 1 axes of any length. Where these are few, only they are
    given, and found much faster. Eigenvalues below zero, which only rounding makes, count as zero.
    """
    width = covariances.shape[-1]
    rank = width if counts is None or not len(counts) else max(1, int(counts.max()) - 1)
    few = rank + SPARE <= width // 2 and ridge == 0
    values, vectors = _few_axes(covariances, rank) if few else torch.linalg.eigh(covariances)
    keep = min(top_k or width, values.shape[-1])
    return Axes((values.clamp(min=0) + ridge).flip(-1)[:, :keep], vectors.flip(-1)[:, :, :keep])


SPARE = 8
"""Random directions beyond the rank, so that no axis is nearly missed by all of them."""


def _few_axes(covariances: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The eigenvalues and -vectors of matrices of at most this rank, in ascending order.

    A matrix times so many random directions spans its range; inside that, a small problem is left.
    """
    width = covariances.shape[-1]
    draw = torch.Generator().manual_seed(0)
    directions = torch.randn(width, rank + SPARE, generator=draw, dtype=torch.float64)
    values, vectors = [], []
    for covariance in covariances:
        basis, _ = torch.linalg.qr(covariance @ directions.to(covariance))
        inside, turns = torch.linalg.eigh(basis.T @ covariance @ basis)
        values.append(inside[-rank:])
        vectors.append(basis @ turns[:, -rank:])
    return torch.stack(values), torch.stack(vectors)


def geometry_similarity(a: Axes, b: Axes) -> Tensor:
    """Per class the mean |cos| of matching axes, weighted by eigenvalue: 1 for equal shapes, 0 for points."""
    cosines = (a.eigenvectors * b.eigenvectors).sum(dim=1).abs()
    weights = a.eigenvalues + b.eigenvalues
    return (weights * cosines).sum(dim=1) / weights.sum(dim=1).clamp(min=torch.finfo(weights.dtype).tiny)
