"""Cross-entropy over a batch whose padded samples must not count."""

import torch.nn.functional as F
from torch import Tensor

from methods.core.batches import Batch
from methods.core.stacking import in_stack, one_of, outside, stack_of


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Mean cross-entropy over the real samples."""
    if not batch.stacked:
        if batch.mask is None:
            return F.cross_entropy(logits, batch.y)
        return batch.mean(F.cross_entropy(logits, batch.y, reduction="none"))
    # Classes first, since a softmax over few classes is many times faster along a dimension that is not the
    # innermost; on the whole stack, as `vmap` would take PyTorch's own function apart at every step.
    if in_stack(logits) and in_stack(batch.y):
        with outside():
            losses = F.cross_entropy(stack_of(logits).mT, stack_of(batch.y), reduction="none")
        return batch.mean(one_of(losses))
    return batch.mean(-F.log_softmax(logits.mT, dim=0).gather(0, batch.y[None])[0])
