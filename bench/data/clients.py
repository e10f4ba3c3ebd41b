"""The clients of a partition, and what each of them has."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench.data.base import Dataset


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

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify the samples of every client."""
        total = hashlib.sha256()
        for client in self.clients:
            for part in (client.train, client.test):
                for domain, indices in part.items():
                    total.update(f"{domain} {len(indices)}\n".encode())
                    total.update(indices.astype("<i8").tobytes())
            total.update(b"\n")
        return total.hexdigest()[:16]


def class_counts(partition: Partition, dataset: Dataset) -> np.ndarray:
    """Train samples per client and class."""
    counts = np.zeros((len(partition.clients), len(dataset.classes)), np.int64)
    for row, client in zip(counts, partition.clients, strict=True):
        for domain, indices in client.train.items():
            row += np.bincount(dataset.train[domain].y[indices], minlength=len(row))
    return counts
