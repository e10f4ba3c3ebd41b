"""A transformer that reads texts, as the encoder of a split model."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

from bench.encoders.networks import Pooling, pooled_output


class TextBackbone(nn.Module):
    """Tokens (N, T) → one vector per text (N, D)."""

    def __init__(self, network: nn.Module, padding: int, pooling: Pooling) -> None:
        super().__init__()
        self.network, self.padding = network, padding
        self.pooling: Pooling = pooling

    def forward(self, ids: Tensor) -> Tensor:
        return pooled_output(self.network, ids, self.padding, self.pooling)

    def train(self, mode: bool = True) -> Self:
        """The transformer stays in its evaluation mode, in which it drops nothing out."""
        super().train(mode)
        self.network.eval()
        return self
