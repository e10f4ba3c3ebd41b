"""The base class of models: their options, and how to build them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import torch
from pydantic import BaseModel, ConfigDict

from bench.encoders import EncoderSpec
from bench.errors import UserError
from methods.core.random import derive
from methods.modules.pixels import MEAN, STD, Pixels
from methods.modules.split_model import SplitModel

__all__ = [
    "MEAN",
    "STD",
    "Context",
    "ModelSpec",
    "Pixels",
    "check_pictures",
    "found_anywhere",
    "seeded_model",
]


@dataclass(frozen=True)
class Context:
    """What a model may depend on, apart from the sizes of its inputs and outputs."""

    class_names: tuple[str, ...]
    encoder: EncoderSpec | None
    """The encoder that produced the inputs; None: the inputs are the original data."""
    cache_root: Path
    vocabulary: str = ""
    """Digest of the tokenizer that the inputs come from; empty where they are not tokens of texts."""


class ModelSpec(BaseModel, ABC):
    """The options of a model, and how to build it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs_code: ClassVar[bool] = False
    """Whether building it executes a Python file that the options name."""

    def identified(self) -> Self:
        """The same options, completed by what identifies the user's own files."""
        return self

    def sources(self) -> tuple[str, ...]:
        """The texts of the user's own files that the model is built from; a node may not have them."""
        return ()

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        """A fresh model for inputs of this shape (without the batch)."""

    def build_with(self, context: Context, shape: tuple[int, ...]) -> SplitModel:
        """As `build`, for models that depend on more than sizes, such as the names of the classes."""
        if context.vocabulary:
            raise UserError(
                "model: this model takes pictures or vectors and the dataset holds texts; set encoder to "
                "minilm, or choose a model that reads texts, such as {name: transformers, source: minilm}"
            )
        return self.build(shape, len(context.class_names))


def found_anywhere(path: str) -> str:
    """The path of a file or folder as every process can use it, whatever its current directory."""
    given = Path(path)
    return path if given.is_absolute() or not given.exists() else str(given.absolute())


def check_pictures(model: str, shape: tuple[int, ...]) -> None:
    """Refuse inputs that are no pictures, such as the features of an encoder."""
    if len(shape) != 3:
        raise UserError(
            f"model '{model}' takes pictures, not inputs of shape {tuple(shape)}; choose head or mlp, or "
            "leave out the encoder"
        )


def seeded_model(
    spec: ModelSpec, shape: tuple[int, ...], classes: int, seed: int, context: Context | None = None
) -> SplitModel:
    """The model with the initial weights of this seed; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "initial weights"))
        return spec.build_with(context, shape) if context else spec.build(shape, classes)
