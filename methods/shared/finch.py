"""FINCH: clustering without parameters, by linking every point to its nearest neighbour.

Sarfraz, Sharma and Stiefelhagen, "Efficient Parameter-free Clustering Using First Neighbor Relations", CVPR
2019. Two points are linked if one is the other's nearest neighbour or both have the same one; the connected
components are the clusters. Then the clusters' means are clustered in the same way, and so on. The result is
the last partition before everything would become one cluster, or one cluster if the first partition is that.
"""

import torch
from torch import Tensor

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
