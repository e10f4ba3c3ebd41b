"""What methods may give clients to train on where these have many samples and see few of them in a round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from methods.core.batches import Samples


class SamplesByIndex(Protocol):
    """Samples that are made when a client comes to them: each the same, whichever others are made with it."""

    @property
    def y(self) -> Tensor:
        """The labels of all samples."""

    @property
    def stored(self) -> Tensor:
        """The inputs that have been made, in any order, with room for all."""

    @property
    def bytes(self) -> int:
        """The size of all samples once they have been made."""

    @property
    def is_compact(self) -> bool:
        """Whether what the samples are made from takes little memory, compared with the samples."""

    def places(self, indices: Tensor) -> Tensor:
        """Which rows of `stored` are the samples with these indices; makes those that are missing."""

    def all(self) -> Samples:
        """All samples in the order of their indices."""
