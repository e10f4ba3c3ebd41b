"""A classifier for inputs that are features: one linear layer, or a perceptron with several."""

from __future__ import annotations

import math
from itertools import pairwise

from pydantic import Field
from torch import nn

from bench.models.base import ModelSpec
from bench.models.linear import Linear
from methods.modules.split_model import SplitModel


class Head(ModelSpec):
    layers: int = Field(default=1, ge=1)
    hidden: int = Field(default=512, gt=0)
    """Width of all layers but the last."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        widths = [math.prod(shape)] + [self.hidden] * (self.layers - 1)
        before: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
        for width, following in pairwise(widths):
            before += [Linear(width, following), nn.ReLU()]
        return SplitModel(
            nn.Sequential(*before) if before else nn.Identity(),
            nn.Identity(),
            Linear(widths[-1], classes),
            feature_size=widths[-1],
            embedding_size=widths[-1],
        )
