"""FINCH in a form that works on stacks of clients: no shape and no branch depends on the data.

The clusters are those of `methods/shared/finch.py`, found for all classes at once. Every point carries the
number of a point of its cluster; a cluster that is linked to its nearest one follows these links to their
end, which is always two clusters that are nearest to each other.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from methods.shared.losses import on_sphere


def clusters_by_class(z: Tensor, y: Tensor, real: Tensor) -> Tensor:
    """For every point the number of the first point of its cluster, by cosine distance within its class.

    `real` is false for points that are padding; each of them is alone.
    """
    doublings = max(1, math.ceil(math.log2(max(2, len(z)))))
    alike = (y[:, None] == y) & real[:, None] & real
    own = torch.arange(len(z), device=z.device)
    clusters = _linked(z, own, alike, doublings)
    for _ in range(doublings - 1):  # every partition has at most half as many clusters as the one before
        merged = _linked(z, clusters, alike, doublings)
        is_one = ((merged[:, None] == merged) | ~alike).all(dim=1)
        clusters = torch.where(is_one, clusters, merged)
    return clusters


def _linked(z: Tensor, clusters: Tensor, alike: Tensor, doublings: int) -> Tensor:
    """The clusters after each is joined with the one whose mean is nearest."""
    together = (clusters[:, None] == clusters) & alike
    directions = on_sphere(together.double() @ z.double())  # a sum points where the mean does
    apart = alike & ~together
    near = torch.where(apart, directions @ directions.mT, -torch.inf)
    neighbour = torch.where(apart.any(dim=1), clusters[near.argmax(dim=1)], clusters)
    end = neighbour
    for _ in range(doublings + 1):
        end = end[end]
    pair = torch.minimum(end, neighbour[end])
    joined = pair[clusters]
    # The first point of a cluster gives it its number, so that numbers do not depend on who linked to whom.
    same = (joined[:, None] == joined) & alike
    numbers = torch.arange(len(z), device=z.device)
    return torch.where(same.any(dim=1), same.int().argmax(dim=1), numbers)
