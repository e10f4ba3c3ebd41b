"""FedCLIP's adapter: CLIP's image features, weighted, against the text features of class prompts."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

from bench.encoders import EncoderSpec
from bench.models.base import Context
from bench.models.clip import ClipSpec
from methods.modules.clip import CosineClassifier, FeatureAdapter
from methods.modules.split_model import SplitModel


class ClipAdapter(ClipSpec):
    name: ClassVar[str] = "clip_adapter"

    template: str = "a picture of a {}"
    """The prompt; {} stands for the class's name."""

    def build_on(self, encoder: EncoderSpec, context: Context, width: int) -> SplitModel:
        from bench.encoders.text import text_features

        text = text_features(encoder, context.class_names, self.template, context.cache_root)
        return SplitModel(
            nn.Identity(),
            FeatureAdapter(width),
            CosineClassifier(torch.tensor(text), self.scale),
            feature_size=width,
            embedding_size=width,
        )
