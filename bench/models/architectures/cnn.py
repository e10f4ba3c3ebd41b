"""The CNN of the FedLSA tables: two 5×5 convolutions and three linear layers.

The projector is linear and followed directly by the classifier, so that methods that normalise its output and
methods that do not train the same weights.
"""

from __future__ import annotations

from pydantic import Field
from torch import nn

from bench.models.base import ModelSpec, Pixels
from bench.models.linear import Linear
from methods.modules.split_model import SplitModel


class CNN(ModelSpec):
    channels: tuple[int, int] = (32, 64)
    features: int = Field(default=512, gt=0)
    """I, the width of z."""
    embedding: int = Field(default=128, gt=0)
    """L, the width of the projector's output."""
    grid: int = Field(default=8, gt=0)
    """Side of the map that enters the first linear layer; larger inputs are pooled down to it."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        first, second = self.channels
        # Pooling before the ReLU gives the same values as after it, on a quarter of the elements.
        encoder = nn.Sequential(
            Pixels(),
            nn.Conv2d(shape[0], first, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(first, second, 5, padding=2),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Identity() if shape[-1] == 4 * self.grid else nn.AdaptiveAvgPool2d(self.grid),
            nn.Flatten(),
            Linear(second * self.grid**2, self.features),
            nn.ReLU(),
        )
        return SplitModel(
            encoder,
            Linear(self.features, self.embedding),
            Linear(self.embedding, classes),
            feature_size=self.features,
            embedding_size=self.embedding,
        )
