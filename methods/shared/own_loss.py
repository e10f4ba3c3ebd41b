"""How well a model fits a client's own samples."""

import torch
from torch import Tensor

from methods.base import Batches, Task, Tree, cross_entropy


def own_loss(task: Task, params: Tree, batches: Batches) -> Tensor:
    """F_k, the mean cross-entropy over all of the client's samples, in evaluation mode."""
    totals, counts = [], []
    with task.evaluation():
        for batch in batches.once():
            totals.append(cross_entropy(task.logits(params, batch.x), batch) * batch.count)
            counts.append(batch.count)
    return torch.stack(totals).sum() / torch.stack(counts).sum().clamp(min=1)
