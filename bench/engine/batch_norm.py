"""What batch norm asks of a client's batches."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from bench.errors import UserError
from methods.core.batches import Samples
from methods.core.random import drawing_from
from methods.core.task import Task
from methods.core.tree import Tree


def check_last_batches(task: Task, train: Mapping[int, Samples], batch_size: int) -> None:
    """A UserError if a client has a batch of one sample whose variance the model would need."""
    if not task.has_batch_norm:
        return
    alone = [client for client, (_, y) in train.items() if len(y) % batch_size == 1 or batch_size == 1]
    if not alone:
        return
    sample = train[alone[0]].x[:1]
    copies = Tree({name: leaf.clone() for name, leaf in task.initial.items()})  # statistics change in place
    try:
        with torch.no_grad(), drawing_from(0):
            task.logits(copies, sample)
    except ValueError:  # PyTorch's, about more than one value per channel
        count = len(train[alone[0]].y)
        raise UserError(
            f"training.batch_size = {batch_size}: client {alone[0]} with its {count} samples has a batch of "
            "one, of which batch norm cannot take a variance; choose another size, or norm: group"
        ) from None
