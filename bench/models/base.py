"""What a model file provides: its options, and how to build it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from methods.parts.streams import derive
from methods.parts.task import SplitModel


class ModelSpec(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        """A fresh model for inputs of this shape (without the batch)."""


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, by which the public code of the domain-skew papers scales its images."""


class Pixels(nn.Module):
    """Bytes of an image to standardised floats; anything else passes as it is."""

    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", 255 * torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(STD).view(3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std if x.dtype == torch.uint8 else x


def seeded_model(spec: ModelSpec, shape: tuple[int, ...], classes: int, seed: int) -> SplitModel:
    """The same initial weights for every method at the same seed, without touching the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "initial weights"))
        return spec.build(shape, classes)
