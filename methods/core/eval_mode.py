"""Which layers compute the same in training and in evaluation, so that switching can be saved."""

from __future__ import annotations

from typing import Final

from torch import nn

ALIKE: Final = frozenset(
    {
        nn.AdaptiveAvgPool2d,
        nn.AvgPool2d,
        nn.Conv2d,
        nn.Flatten,
        nn.GELU,
        nn.GroupNorm,
        nn.Identity,
        nn.LayerNorm,
        nn.LeakyReLU,
        nn.Linear,
        nn.MaxPool2d,
        nn.ReLU,
        nn.Sequential,
        nn.SiLU,
        nn.Tanh,
    }
)
MARK: Final = "alike_in_training"
"""A class outside PyTorch sets this to True if it computes the same in both modes; subclasses do not inherit
it."""


def has_modes(model: nn.Module) -> bool:
    """Whether a part of the model may compute something else in training than in evaluation.

    Layers that are not known to be the same in both are taken to differ.
    """
    kinds = {type(part) for part in model.modules()}
    return any(kind not in ALIKE and not vars(kind).get(MARK, False) for kind in kinds)
