"""The networks of FedCLIP and FedTPG on texts that no CLIP model has made, in both forms."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.contract.models import TextTower
from tests.references.data import CLASSES

WIDTH, WORDS, TOKENS, HEADS, SCALE = 16, 8, 2, 4, 3.0


def texts() -> Tensor:
    """One text feature of length 1 per class."""
    return F.normalize(torch.randn(CLASSES, WIDTH, generator=torch.Generator().manual_seed(5)), dim=1)


def seeded_tower() -> TextTower:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return TextTower(CLASSES, words=WORDS, width=WIDTH).requires_grad_(False)


def our_adapter() -> Any:
    from methods.modules.clip import CosineClassifier, FeatureAdapter
    from methods.modules.split_model import SplitModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        adapter = FeatureAdapter(WIDTH)
    classifier = CosineClassifier(texts(), scale=SCALE)
    return SplitModel(nn.Identity(), adapter, classifier, feature_size=WIDTH, embedding_size=WIDTH)


def our_prompts() -> Any:
    from methods.modules.clip import PromptedClassifier, PromptGenerator
    from methods.modules.split_model import SplitModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        generator = PromptGenerator(texts(), tokens=TOKENS, width=WORDS, heads=HEADS)
    classifier = PromptedClassifier(generator, seeded_tower(), scale=SCALE)
    return SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=WIDTH, embedding_size=WIDTH)


def our_context() -> Any:
    from methods.modules.clip import ContextWords, GuidedClassifier
    from methods.modules.split_model import SplitModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        words = ContextWords(TOKENS, WORDS)
    classifier = GuidedClassifier(words, seeded_tower(), SCALE, texts())
    return SplitModel(nn.Identity(), nn.Identity(), classifier, feature_size=WIDTH, embedding_size=WIDTH)


class Parts(nn.Module):
    def __init__(self, projector: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.projector, self.classifier = projector, classifier

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.projector(x))
        return logits


class Adapter(nn.Module):
    """FedCLIP: Linear–Tanh–Linear–Softmax makes a weight for every feature."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Softmax(dim=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weigh(x)


class Cosines(nn.Module):
    """Scaled cosines between images and fixed texts."""

    def forward(self, image: Tensor) -> Tensor:
        return SCALE * F.normalize(image, dim=1) @ texts().T


class Generator(nn.Module):
    """FedTPG: queries attend to the classes' names, and what they see is refined, as in the public code.

    There the result of the attention replaces the queries, and that of the refinement is added.
    """

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.empty(TOKENS, WORDS))
        self.norm_queries, self.norm_names = nn.LayerNorm(WORDS), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WORDS, HEADS, kdim=WIDTH, vdim=WIDTH, batch_first=True)
        self.refine = nn.Sequential(
            nn.LayerNorm(WORDS), nn.Linear(WORDS, 4 * WORDS), nn.GELU(), nn.Linear(4 * WORDS, WORDS)
        )

    def forward(self) -> Tensor:
        names = self.norm_names(texts())[None]
        context = self.attention(self.norm_queries(self.queries)[None], names, names)[0][0]
        refined: Tensor = context + self.refine(context)
        return refined


class Prompted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.text_tower = Generator(), seeded_tower()

    def forward(self, image: Tensor) -> Tensor:
        text = self.text_tower(self.generator())
        return SCALE * F.normalize(image, dim=1) @ F.normalize(text, dim=1).T


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.empty(TOKENS, WORDS))


class Worded(nn.Module):
    """PromptFL: learnable words before the classes' names; `written` are the features of a written prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.text_tower, self.written = Words(), seeded_tower(), texts()

    def texts(self, words: Tensor) -> Tensor:
        return F.normalize(self.text_tower(words), dim=1)

    def logits(self, image: Tensor, text: Tensor) -> Tensor:
        return SCALE * F.normalize(image, dim=1) @ text.T

    def forward(self, image: Tensor) -> Tensor:
        return self.logits(image, self.texts(self.generator.words))


def plain_context() -> nn.Module:
    return Parts(nn.Identity(), Worded())


def plain_adapter() -> nn.Module:
    return Parts(Adapter(), Cosines())


def plain_prompts() -> nn.Module:
    return Parts(nn.Identity(), Prompted())
