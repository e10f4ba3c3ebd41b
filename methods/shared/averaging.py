"""Averages over the clients' replies, as most servers take them."""

from abc import ABC
from collections.abc import Sequence
from typing import Literal

from methods.base import FedAlgorithm, Reply, Tree
from methods.core.tree import weighted_sum


class Averaging(FedAlgorithm, ABC):
    weighting: Literal["samples", "uniform"] = "samples"
    """How much a client counts in an average: by its number of samples, or all the same."""

    def weights(self, replies: Sequence[Reply]) -> list[float]:
        """The clients' shares in an average; they sum to 1."""
        parts = [reply.samples if self.weighting == "samples" else 1 for reply in replies]
        return [part / sum(parts) for part in parts]

    def average(self, replies: Sequence[Reply], key: str = "model") -> Tree:
        return weighted_sum([reply.content[key] for reply in replies], self.weights(replies))
