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


class Pixels(nn.Module):
    """Bytes of an image to floats in [−1, 1]; floats pass as they are."""

    def forward(self, x: Tensor) -> Tensor:
        return x.float().mul(2 / 255).sub(1) if x.dtype == torch.uint8 else x


def seeded_model(spec: ModelSpec, shape: tuple[int, ...], classes: int, seed: int) -> SplitModel:
    """The same initial weights for every method at the same seed, without touching the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "initial weights"))
        return spec.build(shape, classes)
