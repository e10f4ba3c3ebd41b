"""Learnable context words: CLIP's image features against prompts that begin with them."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from bench.encoders import EncoderSpec
from bench.models.base import Context
from bench.models.clip import ClipSpec
from methods.modules.clip import ContextWords, GuidedClassifier
from methods.modules.split_model import SplitModel


class PromptContext(ClipSpec):
    name: ClassVar[str] = "prompt_context"

    tokens: int = Field(default=16, ge=1)
    """Number of context words before a class's name."""
    template: str = "a photo of a {}"
    """The written prompt that FedPGP holds on to; {} stands for the class's name."""

    def build_on(self, encoder: EncoderSpec, context: Context, width: int) -> SplitModel:
        from bench.encoders.prompts import prompted_text_tower
        from bench.encoders.text import text_features

        written = text_features(encoder, context.class_names, self.template, context.cache_root)
        tower = prompted_text_tower(encoder, context.class_names, self.tokens)
        words = ContextWords(self.tokens, tower.width)
        return SplitModel(
            nn.Identity(),
            nn.Identity(),
            GuidedClassifier(words, tower, self.scale, torch.tensor(written)),
            feature_size=width,
            embedding_size=width,
        )
