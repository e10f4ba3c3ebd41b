"""Draws samples class by class, in given or proportional numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bench.data.base import Split


class Pool(NamedTuple):
    """The samples of all domains, one domain after another."""

    domains: tuple[str, ...]
    offsets: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, splits: Mapping[str, Split]) -> Pool:
        offsets = np.cumsum([0, *(len(split) for split in splits.values())])
        return cls(tuple(splits), offsets, np.concatenate([split.y for split in splits.values()]))

    def by_domain(self, members: np.ndarray) -> dict[str, np.ndarray]:
        """Positions in the pool, as sorted indices into each domain that contains any of them."""
        members = np.sort(members)
        bounds = np.searchsorted(members, self.offsets)
        return {
            domain: members[bounds[i] : bounds[i + 1]] - self.offsets[i]
            for i, domain in enumerate(self.domains)
            if bounds[i] < bounds[i + 1]
        }


def dealt(labels: np.ndarray, hands: int, total: int, rng: np.random.Generator) -> list[np.ndarray]:
    """`total` samples in the class proportions of all, dealt like cards, class after class.

    So the hands differ by at most one sample, in size and in each class.
    """
    counts = np.bincount(labels)
    least = np.minimum(counts, hands)
    if least.sum() > total:
        least = np.zeros_like(counts)
    drawn = draw_per_class(labels, quotas_of(counts, total, least=least), rng, shuffled=True)
    by_class = drawn[np.argsort(labels[drawn], kind="stable")]
    return [np.sort(by_class[hand::hands]) for hand in range(hands)]


def quotas_of(
    counts: np.ndarray, total: int, least: np.ndarray | None = None, most: np.ndarray | None = None
) -> np.ndarray:
    """`total` divided in proportion to the counts by largest remainders, within the bounds."""
    least = np.zeros_like(counts) if least is None else least
    most = counts if most is None else most
    ideal = total * counts / max(counts.sum(), 1)
    quotas: np.ndarray = np.clip(ideal.astype(np.int64), least, most)
    while (missing := total - quotas.sum()) != 0:
        step = int(np.sign(missing))
        movable = quotas < most if step > 0 else quotas > least
        quotas[np.where(movable, step * (ideal - quotas), -np.inf).argmax()] += step
    return quotas


def draw_per_class(
    labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator, shuffled: bool = False
) -> np.ndarray:
    """Positions of counts[c] samples of each class c, without replacement."""
    drawn = [
        rng.choice(np.nonzero(labels == label)[0], count, replace=False)
        for label, count in enumerate(counts)
        if count
    ]
    members = np.concatenate([np.empty(0, np.int64), *drawn])
    return members if shuffled else np.sort(members)


def split_classes(labels: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions for each client, given samples per class and client."""
    parts: list[list[np.ndarray]] = [[] for _ in range(counts.shape[1])]
    for label, per_client in enumerate(counts):
        members = rng.permutation(np.nonzero(labels == label)[0])
        for part, chunk in zip(parts, np.split(members, per_client.cumsum()[:-1]), strict=True):
            part.append(chunk)
    return [np.concatenate(part) for part in parts]
