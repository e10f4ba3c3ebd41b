"""Cross-entropy over a batch whose padded samples must not count."""

import torch.nn.functional as F
from torch import Tensor

from methods.core.batches import Batch
from methods.fast.vmap_levels import in_stack, one_of, outside, present, whole_stack

TERM = "cross_entropy"
"""The name under which cross-entropies are recorded, unless a method gives another."""


def cross_entropy(logits: Tensor, batch: Batch, term: str = TERM) -> Tensor:
    """Mean cross-entropy over the real samples, with the suite's label smoothing and mixed labels.

    `term` is its name among the recorded terms of the loss; empty: it is not recorded.
    """
    loss = _mean_loss(logits, batch, batch.y)
    if batch.mixed is not None:
        share = batch.mixed.share
        loss = (1 - share) * loss + share * _mean_loss(logits, batch, batch.mixed.y)
    return batch.term(term, loss) if term else loss


def label_losses(log_p: Tensor, batch: Batch) -> Tensor:
    """The same per sample, from logarithms of probabilities (samples × classes)."""
    losses = _of_labels(log_p, batch, batch.y)
    if batch.mixed is None:
        return losses
    share = batch.mixed.share
    return (1 - share) * losses + share * _of_labels(log_p, batch, batch.mixed.y)


def _of_labels(log_p: Tensor, batch: Batch, y: Tensor) -> Tensor:
    losses = -log_p.gather(-1, y[:, None])[:, 0]
    if not batch.smoothing:
        return losses
    return (1 - batch.smoothing) * losses - batch.smoothing * log_p.mean(dim=-1)


def _mean_loss(logits: Tensor, batch: Batch, y: Tensor) -> Tensor:
    if not batch.stacked:
        if batch.mask is None:
            return F.cross_entropy(logits, y, label_smoothing=batch.smoothing)
        return batch.mean(F.cross_entropy(logits, y, reduction="none", label_smoothing=batch.smoothing))
    # Classes first, since a softmax over few classes is many times faster along a dimension that is not the
    # innermost; on the whole stack, as `vmap` would take PyTorch's own function apart at every step.
    if in_stack(logits) and in_stack(y):
        levels = present()
        with outside():
            of_all = whole_stack(logits, levels).mT
            labels = whole_stack(y, levels)
            losses = F.cross_entropy(
                of_all.flatten(end_dim=-3),
                labels.flatten(end_dim=-2),
                reduction="none",
                label_smoothing=batch.smoothing,
            ).view(labels.shape)
        return batch.mean(one_of(losses, levels))
    return batch.mean(_of_labels(F.log_softmax(logits.mT, dim=0).mT, batch, y))
