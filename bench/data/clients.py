"""The clients of a partition, and what each of them has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench.data.base import Dataset, Split


@dataclass(frozen=True)
class Client:
    """The samples of one client: domain → sorted indices into that domain's train and test arrays."""

    domain: str | None
    """The domain of all its train samples, or None if they come from several."""
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        return sum(len(indices) for indices in self.train.values())


@dataclass(frozen=True)
class Partition:
    clients: tuple[Client, ...]
    """Those who train."""
    unseen: tuple[Client, ...] = ()
    """Those who never train. Where there are any, models are tested on their test samples alone."""

    @property
    def tested(self) -> dict[str, np.ndarray]:
        """Domain → the test samples of the unseen clients, each once."""
        return pooled_test(self.unseen)

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify the samples of every client."""
        total = hashlib.sha256()
        for group, clients in (("", self.clients), ("unseen\n", self.unseen)):
            total.update(group.encode() if clients else b"")
            for client in clients:
                for part in (client.train, client.test):
                    for domain, indices in part.items():
                        total.update(f"{domain} {len(indices)}\n".encode())
                        total.update(indices.astype("<i8").tobytes())
                total.update(b"\n")
        return total.hexdigest()[:16]


def class_counts(partition: Partition, dataset: Dataset) -> np.ndarray:
    """Train samples per client and class."""
    return _per_class([client.train for client in partition.clients], dataset.train, len(dataset.classes))


def tested_counts(partition: Partition, dataset: Dataset) -> np.ndarray:
    """Test samples per unseen client and class."""
    return _per_class([client.test for client in partition.unseen], dataset.test, len(dataset.classes))


def pooled_test(clients: Iterable[Client]) -> dict[str, np.ndarray]:
    """Domain → the test samples of these clients, each once, in order."""
    found: dict[str, list[np.ndarray]] = {}
    for client in clients:
        for domain, indices in client.test.items():
            found.setdefault(domain, []).append(indices)
    return {domain: np.unique(np.concatenate(parts)) for domain, parts in found.items()}


def _per_class(
    parts: Sequence[Mapping[str, np.ndarray]], splits: Mapping[str, Split], classes: int
) -> np.ndarray:
    counts = np.zeros((len(parts), classes), np.int64)
    for row, part in zip(counts, parts, strict=True):
        for domain, indices in part.items():
            row += np.bincount(splits[domain].y[indices], minlength=classes)
    return counts
