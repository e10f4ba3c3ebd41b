"""FedTPG's prompt generator: CLIP's image features against prompts written for the classes' names."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from bench.encoders import EncoderSpec
from bench.models.base import Context
from bench.models.clip import ClipSpec
from methods.modules.clip import PromptedClassifier, PromptGenerator
from methods.modules.split_model import SplitModel


class PromptGeneratorModel(ClipSpec):
    name: ClassVar[str] = "prompt_generator"

    tokens: int = Field(default=4, ge=1)
    """Number of context words that are generated before a class's name."""
    heads: int = Field(default=4, ge=1)

    def build_on(self, encoder: EncoderSpec, context: Context, width: int) -> SplitModel:
        from bench.encoders.prompts import prompted_text_tower
        from bench.encoders.text import text_features

        names = torch.tensor(text_features(encoder, context.class_names, "{}", context.cache_root))
        tower = prompted_text_tower(encoder, context.class_names, self.tokens)
        generator = PromptGenerator(names, self.tokens, tower.width, self.heads)
        return SplitModel(
            nn.Identity(),
            nn.Identity(),
            PromptedClassifier(generator, tower, self.scale),
            feature_size=width,
            embedding_size=width,
        )
