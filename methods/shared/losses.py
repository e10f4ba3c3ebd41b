"""Losses over a batch whose padded samples must not count."""

import torch
import torch.nn.functional as F
from torch import Tensor

from methods.core.batches import Batch
from methods.core.stacking import in_stack, one_of, outside, stack_of


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Mean cross-entropy over the live samples."""
    if not batch.stacked:
        return F.cross_entropy(logits, batch.y)
    # Classes first, since a softmax over few classes is many times quicker along a dimension that is not the
    # innermost; on the whole stack, as `vmap` would take PyTorch's own function apart at every step.
    if in_stack(logits) and in_stack(batch.y):
        with outside():
            losses = F.cross_entropy(stack_of(logits).mT, stack_of(batch.y), reduction="none")
        return batch.mean(one_of(losses))
    return batch.mean(-F.log_softmax(logits.mT, dim=0).gather(0, batch.y[None])[0])


def on_sphere(vectors: Tensor) -> Tensor:
    """nor(v) = v / ‖v‖₂, row by row."""
    return F.normalize(vectors, dim=-1)


def class_sums(features: Tensor, batch: Batch, classes: int) -> tuple[Tensor, Tensor]:
    """Per class: the sum of the live samples' features, and how many they are."""
    members = (batch.y[:, None] == torch.arange(classes, device=batch.y.device)).to(features.dtype)
    if batch.mask is not None:
        members = members * batch.mask[:, None]
    return members.T @ features, members.sum(dim=0)


def safe_divide(total: Tensor, count: Tensor) -> Tensor:
    """total / count row by row, 0 where the count is 0."""
    return total / torch.clamp(count, min=1)[:, None]
