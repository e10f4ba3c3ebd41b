"""Small calculations on features that several losses share."""

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.base import Batch


def on_sphere(vectors: Tensor) -> Tensor:
    """nor(v) = v / ‖v‖₂, row by row."""
    return F.normalize(vectors, dim=-1)


def class_sums(features: Tensor, batch: Batch, classes: int) -> tuple[Tensor, Tensor]:
    """Per class: the sum of the real samples' features, and how many they are."""
    members = (batch.y[:, None] == torch.arange(classes, device=batch.y.device)).to(features.dtype)
    members = members * batch.real[:, None].to(features.dtype)
    return members.T @ features, members.sum(dim=0)


def safe_divide(total: Tensor, count: Tensor) -> Tensor:
    """total / count row by row, 0 where the count is 0."""
    return total / torch.clamp(count, min=1)[:, None]
