"""The small models on which the contract runs methods, one for every kind that some method needs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bench.models.architectures.cnn import CNN
from bench.models.architectures.head import Head
from bench.models.architectures.mlp import MLP
from bench.models.base import ModelSpec
from bench.models.vit import LoraOptions
from methods.modules.clip import (
    ContextWords,
    CosineClassifier,
    FeatureAdapter,
    GuidedClassifier,
    PromptedClassifier,
    PromptGenerator,
)
from methods.modules.split_model import SplitModel


class Norm(ModelSpec):
    """Has batch norm, thus buffers of floats and of an integer; a channel has two values per sample, so that
    it has a variance in a batch of one."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        channels = nn.Sequential(nn.Linear(shape[0], 8), nn.Unflatten(1, (4, 2)))
        encoder = nn.Sequential(channels, nn.BatchNorm1d(4), nn.Flatten(), nn.ReLU())
        return SplitModel(encoder, nn.Identity(), nn.Linear(8, classes), feature_size=8, embedding_size=8)


class Adapter(ModelSpec):
    """FedCLIP's, on texts that no CLIP model has made."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        width = shape[0]
        classifier = CosineClassifier(torch.randn(classes, width), scale=2.0)
        return SplitModel(
            nn.Identity(), FeatureAdapter(width), classifier, feature_size=width, embedding_size=width
        )


class Prompts(ModelSpec):
    """FedTPG's, with a tiny text tower that no CLIP model has."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        width = shape[0]
        generator = PromptGenerator(torch.randn(classes, width), tokens=2, width=8, heads=4)
        classifier = PromptedClassifier(generator, TextTower(classes, words=8, width=width), scale=2.0)
        return SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=width, embedding_size=width)


class Context(ModelSpec):
    """PromptFL's, with the same tower and the features of prompts that people wrote."""

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        width = shape[0]
        tower = TextTower(classes, words=8, width=width)
        classifier = GuidedClassifier(ContextWords(3, 8), tower, 2.0, torch.randn(classes, width))
        return SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=width, embedding_size=width)


class TextTower(nn.Module):
    """Attention over the context words and one word a class, read at the latter."""

    def __init__(self, classes: int, words: int, width: int) -> None:
        super().__init__()
        self.names = nn.Parameter(torch.randn(classes, 1, words))
        self.attention = nn.MultiheadAttention(words, 2, batch_first=True)
        self.project = nn.Linear(words, width)

    def forward(self, context: Tensor) -> Tensor:
        x = torch.cat([context.expand(len(self.names), *context.shape), self.names], dim=1)
        seen: Tensor = self.project(self.attention(x, x, x, need_weights=False)[0][:, -1])
        return seen


class Vit(LoraOptions):
    """A frozen transformer of two blocks with LoRA branches of rank 2."""

    rank: int = 2

    def build(self, shape: tuple[int, ...], classes: int) -> SplitModel:
        from timm.models import VisionTransformer

        vit = VisionTransformer(
            img_size=shape[-1],
            patch_size=4,
            embed_dim=8,
            depth=2,
            num_heads=2,
            mlp_ratio=2,
            num_classes=0,
            global_pool="avg",
            class_token=False,
        )
        return self.adapted(vit, classes)


class TinyModel(NamedTuple):
    spec: ModelSpec
    shape: tuple[int, ...]
    about: str
    """The kind of model, in words."""


MODELS = {
    "mlp": TinyModel(MLP(hidden=8), (6,), "a perceptron"),
    "cnn": TinyModel(CNN(channels=(2, 3), features=6, embedding=5, grid=2), (1, 8, 8), "a CNN"),
    "head": TinyModel(Head(), (6,), "a linear classifier on frozen features"),
    "norm": TinyModel(Norm(), (6,), "a network with batch norm"),
    "adapter": TinyModel(Adapter(), (6,), "CLIP with an adapter of the features"),
    "prompts": TinyModel(Prompts(), (6,), "CLIP with a network that writes prompts"),
    "context": TinyModel(Context(), (6,), "CLIP with learnt prompt words"),
    "vit": TinyModel(Vit(), (3, 8, 8), "a frozen transformer with LoRA branches"),
}
