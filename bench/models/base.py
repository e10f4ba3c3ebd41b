"""What a model file provides: its options, and how to build it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

from bench.encoders import EncoderSpec
from methods.core.random import derive
from methods.modules.pixels import MEAN, STD, Pixels
from methods.modules.split_model import SplitModel

__all__ = ["MEAN", "STD", "Context", "ModelSpec", "Pixels", "seeded_model"]


@dataclass(frozen=True)
class Context:
    """What a model may depend on besides the sizes of its inputs and outputs."""

    class_names: tuple[str, ...]
    encoder: EncoderSpec | None
    """What the inputs were encoded with; None: they are the data's own."""
    cache_root: Path


class ModelSpec(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        """A fresh model for inputs of this shape (without the batch)."""

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        """The same where more is known; for models that are made of the classes' names, say."""
        return self.build(shape, len(context.class_names))


def seeded_model(
    spec: ModelSpec, shape: tuple[int, ...], classes: int, seed: int, context: Context | None = None
) -> SplitModel:
    """The same initial weights for every method at the same seed, without touching the global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "initial weights"))
        return spec.build_with(context, shape) if context else spec.build(shape, classes)
