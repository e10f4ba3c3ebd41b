"""The text tower of a CLIP model on prompts whose first words are vectors instead of text."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bench.encoders import EncoderSpec
from bench.encoders.loading import load_open_clip
from bench.errors import UserError


class PromptedTextTower(nn.Module):
    """Frozen; takes context words and returns the text features of every class's prompt.

    The tower is causal, so nothing behind a prompt's end can change its features: prompts are cut after the
    last end of all, which makes short ones several times cheaper than the tower's full length.
    """

    words: Tensor
    positions: Tensor
    mask: Tensor
    ends: Tensor

    def __init__(self, clip: Any, prompts: Tensor) -> None:
        """`prompts`: token numbers, one row a class."""
        super().__init__()
        ends = _ends(clip, prompts)
        length = int(ends.max()) + 1
        self.register_buffer("ends", ends, persistent=False)
        self.register_buffer("words", clip.token_embedding(prompts[:, :length]).detach(), persistent=False)
        self.register_buffer("positions", clip.positional_embedding[:length].detach(), persistent=False)
        self.register_buffer("mask", clip.attn_mask[:length, :length], persistent=False)
        self.transformer, self.norm, self.projection = clip.transformer, clip.ln_final, clip.text_projection
        # There is no dropout, so both modes compute the same; but attention evaluates without gradients.
        self.requires_grad_(False).train()

    @property
    def width(self) -> int:
        return self.words.shape[-1]

    def forward(self, context: Tensor) -> Tensor:
        """tokens × width → classes × features."""
        written = context.expand(len(self.words), *context.shape)
        x = torch.cat([self.words[:, :1], written, self.words[:, 1 + len(context) :]], dim=1)
        x = self.norm(self.transformer(x + self.positions, attn_mask=self.mask))
        features: Tensor = x[torch.arange(len(x)), self.ends] @ self.projection
        return features


def prompted_text_tower(spec: EncoderSpec, class_names: Sequence[str], tokens: int) -> PromptedTextTower:
    """For prompts of so many context words and a class's name."""
    with torch.random.fork_rng(devices=[]):  # weights are drawn before they are read
        clip, tokenise = load_open_clip(spec)
    if not _has_plain_text_tower(clip):
        raise UserError(
            f"encoder '{spec.name}' has a text tower that takes no context words; choose a model with "
            "CLIP's own, such as open_clip:ViT-B-16/openai"
        )
    blank = " ".join(["X"] * tokens)  # one token each, for the context words to replace
    return PromptedTextTower(clip, tokenise([f"{blank} {name.replace('_', ' ')}." for name in class_names]))


def _has_plain_text_tower(clip: Any) -> bool:
    return (
        isinstance(getattr(clip, "text_projection", None), nn.Parameter)
        and getattr(clip, "attn_mask", None) is not None
        and clip.text_pool_type in ("argmax", "eos")
    )


def _ends(clip: Any, prompts: Tensor) -> Tensor:
    """Where each prompt's features are read: at its end-of-text token."""
    if clip.text_pool_type == "argmax":
        return prompts.argmax(dim=1)
    ends: Tensor = (prompts == clip.text_eos_id).int().argmax(dim=1)
    return ends
