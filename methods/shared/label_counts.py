"""How many samples of each class a client trains on, and what losses under label skew make of it."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from methods.base import Batches

ABSENT: Final = -1e4
"""Stands for −∞ in logits: exp(−10⁴) is 0 as a float, and so is 0 × 10⁴ for samples that pad a batch."""


def label_counts(batches: Batches, classes: int) -> Tensor:
    """The number of the client's samples of every class."""
    counts = []
    for batch in batches.once():
        members = (batch.y == torch.arange(classes, device=batch.y.device)[:, None]).float()
        counts.append((members * batch.real).sum(dim=1))
    return torch.stack(counts).sum(dim=0)


def log_counts(counts: Tensor) -> Tensor:
    """log n, what balanced softmax adds to logits; classes without samples drop out of the softmax."""
    return torch.where(counts > 0, counts.clamp(min=1).log(), ABSENT)
