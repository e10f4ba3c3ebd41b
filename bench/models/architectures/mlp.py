"""A multi-layer perceptron with one hidden layer, for flat inputs and small images."""

from __future__ import annotations

import math

from pydantic import Field
from torch import nn

from bench.models.base import ModelSpec, Pixels
from bench.models.linear import Linear
from methods.modules.split_model import SplitModel


class MLP(ModelSpec):
    hidden: int = Field(default=128, gt=0)

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        encoder = nn.Sequential(Pixels(), nn.Flatten(), Linear(math.prod(shape), self.hidden), nn.ReLU())
        return SplitModel(
            encoder,
            nn.Identity(),
            Linear(self.hidden, classes),
            feature_size=self.hidden,
            embedding_size=self.hidden,
        )
