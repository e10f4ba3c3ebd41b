"""The CNN of the FedLSA tables: two 5×5 convolutions and three linear layers.

The projector is linear and followed directly by the classifier, so that methods that normalise its output and
methods that do not train the same weights. The options are other readings of the paper's network.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from bench.models.base import ModelSpec, Pixels, check_pictures
from bench.models.linear import Linear
from methods.modules.dropout import Dropout
from methods.modules.split_model import SplitModel


class CNN(ModelSpec):
    channels: tuple[int, int] = (32, 64)
    features: int = Field(default=512, gt=0)
    """I, the width of z."""
    embedding: int = Field(default=128, gt=0)
    """L, the width of the projector's output."""
    grid: int = Field(default=8, gt=0)
    """Side of the map that enters the first linear layer; larger inputs are pooled down to it."""
    use_bn: bool = Field(default=False, exclude_if=lambda used: not used)
    """Whether batch norm follows each convolution."""
    dropout: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda probability: probability == 0)
    """Probability of setting an input of the encoder's linear layer to 0 in training."""
    projector_layers: Literal[1, 2] = Field(default=1, exclude_if=lambda layers: layers == 1)
    """Linear layers of the projector; of two, the first is as wide as z, with a ReLU behind it."""
    classifier_hidden: int | None = Field(default=None, gt=0, exclude_if=lambda width: width is None)
    """Width of a hidden layer of the classifier; None: it has none."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        check_pictures("cnn", shape)
        first, second = self.channels
        encoder = nn.Sequential(
            Pixels(),
            *self._stage(shape[0], first),
            *self._stage(first, second),
            nn.Identity() if shape[-1] == 4 * self.grid else nn.AdaptiveAvgPool2d(self.grid),
            nn.Flatten(),
            *([Dropout(self.dropout)] if self.dropout else []),
            Linear(second * self.grid**2, self.features),
            nn.ReLU(),
        )
        return SplitModel(
            encoder,
            self._projector(),
            self._classifier(classes),
            feature_size=self.features,
            embedding_size=self.embedding,
        )

    def _stage(self, before: int, after: int) -> list[nn.Module]:
        """A convolution that halves the map; pooling before the ReLU gives the same as after it, quicker."""
        norm = [nn.BatchNorm2d(after)] if self.use_bn else []
        return [nn.Conv2d(before, after, 5, padding=2), *norm, nn.MaxPool2d(2), nn.ReLU()]

    def _projector(self) -> nn.Module:
        if self.projector_layers == 1:
            return Linear(self.features, self.embedding)
        return nn.Sequential(
            Linear(self.features, self.features), nn.ReLU(), Linear(self.features, self.embedding)
        )

    def _classifier(self, classes: int) -> nn.Module:
        if self.classifier_hidden is None:
            return Linear(self.embedding, classes)
        return nn.Sequential(
            Linear(self.embedding, self.classifier_hidden),
            nn.ReLU(),
            Linear(self.classifier_hidden, classes),
        )
