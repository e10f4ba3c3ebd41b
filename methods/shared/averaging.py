"""Averages over the clients' replies, as most servers take them."""

from abc import ABC
from collections.abc import Sequence
from typing import Literal

from methods.base import FedAlgorithm, Reply, Tree, weighted_sum


class Averaging(FedAlgorithm, ABC):
    """A method whose server takes weighted averages."""

    weighting: Literal["samples", "uniform"] = "samples"
    """w, a client's weight in averages: by its number of samples (FedAvg's paper), or the same for all."""

    def weights(self, replies: Sequence[Reply]) -> list[float]:
        """The clients' weights; they sum to 1."""
        parts = [reply.samples if self.weighting == "samples" else 1 for reply in replies]
        return [part / sum(parts) for part in parts]

    def average(self, replies: Sequence[Reply], key: str = "model") -> Tree:
        """The weighted mean of one entry of the replies."""
        return weighted_sum([reply.content[key] for reply in replies], self.weights(replies))
