"""The trainable parts around a frozen CLIP model, on embeddings of its image tower."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class FeatureAdapter(nn.Module):
    """Multiplies the image features by weights that two linear layers compute from them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Softmax(dim=-1)
        )

    def forward(self, features: Tensor) -> Tensor:
        weights: Tensor = self.weigh(features)
        return weights * features


class CosineClassifier(nn.Module):
    """Logits are scaled cosines between the features and every class's text."""

    text: Tensor

    def __init__(self, text: Tensor, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.register_buffer("text", F.normalize(text, dim=-1), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * F.normalize(features, dim=-1) @ self.text.T


class PromptGenerator(nn.Module):
    """Learnable queries look at the classes' names and become the words before each of them."""

    names: Tensor

    def __init__(self, names: Tensor, tokens: int, width: int, heads: int) -> None:
        """`names`: embeddings of the classes' names; `width`: of the words to make."""
        super().__init__()
        self.register_buffer("names", F.normalize(names, dim=-1), persistent=False)
        self.queries = nn.Parameter(0.02 * torch.randn(tokens, width))
        self.norm_queries, self.norm_names = nn.LayerNorm(width), nn.LayerNorm(names.shape[1])
        self.attention = nn.MultiheadAttention(
            width, heads, kdim=names.shape[1], vdim=names.shape[1], batch_first=True
        )
        self.refine = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self) -> Tensor:
        """tokens × width."""
        names = self.norm_names(self.names)[None]
        queries = self.norm_queries(self.queries)[None]
        seen: Tensor = self.attention(queries, names, names, need_weights=False)[0][0]
        refined: Tensor = self.refine(seen)
        return seen + refined


class ContextWords(nn.Module):
    """Learnable words that stand before every class's name, whatever the class."""

    alike_in_training = True

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.words = nn.Parameter(0.02 * torch.randn(tokens, width))

    def forward(self) -> Tensor:
        """tokens × width."""
        return self.words


class PromptedClassifier(nn.Module):
    """Logits are scaled cosines with text features of prompts: context words, then the class name.

    `generator` makes the words; `text_tower` takes them and returns a vector for every class; its weights
    are frozen, so that they neither travel nor are kept.
    """

    def __init__(
        self, generator: PromptGenerator | ContextWords, text_tower: nn.Module, scale: float
    ) -> None:
        super().__init__()
        self.generator, self.text_tower, self.scale = generator, text_tower.requires_grad_(False), scale

    def forward(self, features: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):  # the only one that can be stacked on a CPU
            text = self.text_tower(self.generator())
        return self.scale * F.normalize(features, dim=-1) @ F.normalize(text, dim=-1).T


class GuidedClassifier(PromptedClassifier):
    """The same, and beside it the text features of prompts that people wrote, of length 1."""

    written: Tensor

    def __init__(self, generator: ContextWords, text_tower: nn.Module, scale: float, written: Tensor) -> None:
        """`written`: classes × features."""
        super().__init__(generator, text_tower, scale)
        self.register_buffer("written", F.normalize(written, dim=-1), persistent=False)
