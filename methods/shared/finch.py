"""FINCH: clustering without parameters, by linking every point to its nearest neighbour.

Sarfraz, Sharma and Stiefelhagen, "Efficient Parameter-free Clustering Using First Neighbor Relations", CVPR
2019. Two points are linked if one is the other's nearest neighbour or both have the same one; the connected
components are the clusters. Then the clusters' means are clustered in the same way, and so on. The result is
the last partition before everything would become one cluster, or one cluster if the first partition is that.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from methods.base import State
from methods.shared.losses import on_sphere


def finch(points: Tensor) -> Tensor:
    """The cluster of every point by cosine distance, numbered in the order of the clusters' first points."""
    clusters = linked(points)
    while True:
        # Means are over a cluster's points, not over the means of the smaller clusters in it.
        merged = linked(cluster_means(points, clusters))[clusters]
        found, left = int(clusters.max()) + 1, int(merged.max()) + 1
        if left in (1, found):
            return clusters
        clusters = merged


def cluster_means(points: Tensor, clusters: Tensor) -> Tensor:
    """The mean of the points of each cluster."""
    members = clusters == torch.arange(int(clusters.max()) + 1, device=clusters.device)[:, None]
    return members.to(points.dtype) @ points / members.sum(dim=1, keepdim=True)


def linked(points: Tensor) -> Tensor:
    """The connected components of the links from every point to its nearest neighbour.

    Points with the same nearest neighbour are linked through it.
    """
    if len(points) == 1:
        return torch.zeros(1, dtype=torch.int64, device=points.device)
    directions = on_sphere(points.double())
    nearest = (directions @ directions.T).fill_diagonal_(float("-inf")).argmax(dim=1).tolist()
    parents = list(range(len(nearest)))

    def root(point: int) -> int:
        while parents[point] != point:
            point = parents[point]
        return point

    for point, neighbour in enumerate(nearest):
        parents[root(neighbour)] = root(point)
    roots = [root(point) for point in range(len(parents))]
    numbers = {each: number for number, each in enumerate(dict.fromkeys(roots))}
    return torch.tensor([numbers[each] for each in roots], device=points.device)


def clustered_prototypes(by_class: Sequence[Tensor]) -> State:
    """`centres`, the means of the clusters of every class's vectors, and `classes`, to which each belongs."""
    centres = [cluster_means(own, finch(own)) if len(own) else own for own in by_class]
    labels = [label for label, found in enumerate(centres) for _ in found]
    return {"centres": torch.cat(centres), "classes": torch.tensor(labels, device=centres[0].device)}


def prototypes_per_class(server: State) -> dict[str, float]:
    """For the record of a round; nothing before the first prototypes."""
    if "classes" not in server:
        return {}
    return {"prototypes_per_class": len(server["classes"]) / len(server["classes"].unique())}


def contrast(similarity: Tensor, own: Tensor) -> Tensor:
    """Per sample −log of its own prototypes' share (`own`: samples × prototypes); 0 where it has none."""
    # A sample without prototypes takes all for its own: its share is 1, its term and gradient are 0.
    own = own | ~own.any(dim=1, keepdim=True)
    return similarity.logsumexp(dim=1) - similarity.masked_fill(~own, float("-inf")).logsumexp(dim=1)
