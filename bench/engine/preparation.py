"""What is done to every batch that a client trains on, as the suite's section `training` asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from bench.config.training import Augmentation
from bench.errors import UserError
from methods.core.augmentation import cropped, flipped, jittered, mixed, mixup_shares
from methods.core.batches import Batch
from methods.core.loss_terms import LossTerms
from methods.core.task import Task


@dataclass(frozen=True)
class Recipe:
    """Augmentation and label smoothing of one cell."""

    augmentation: Augmentation | None = None
    smoothing: float = 0.0
    standardised: Callable[[Tensor], Tensor] = Tensor.float
    """How the model turns the values of pixels into floats."""

    def preparation(self, terms: LossTerms | None = None) -> Callable[[Batch], Batch] | None:
        """What to do to a batch, with notes of the loss's terms where these are given; None: nothing."""
        if not (self.augmentation or self.smoothing or terms is not None):
            return None
        return partial(self._prepared, terms)

    def _prepared(self, terms: LossTerms | None, batch: Batch) -> Batch:
        if self.augmentation is not None:
            batch = self._augmented(batch, self.augmentation)
        return batch._replace(smoothing=self.smoothing, terms=terms)

    def _augmented(self, batch: Batch, how: Augmentation) -> Batch:
        as_bytes = batch.x.dtype == torch.uint8
        if how.crop:
            batch = cropped(batch, how.crop)
        if how.flip:
            batch = flipped(batch)
        if how.jitters:
            batch = jittered(batch, how.brightness, how.contrast, how.saturation)
        if (how.mixup or how.jitters) and as_bytes:
            batch = batch._replace(x=self.standardised(batch.x))
        if how.mixup:
            batch = mixed(batch, self._shares.to(batch.y.device))
        if batch.x.dim() == 4 and not batch.stacked:  # the layout in which convolutions are far quicker
            batch = batch._replace(x=batch.x.contiguous(memory_format=torch.channels_last))
        return batch

    @cached_property
    def _shares(self) -> Tensor:
        return mixup_shares(self.augmentation.mixup if self.augmentation else 1.0)


def recipe_of(augmentation: Augmentation | None, smoothing: float, task: Task, as_bytes: bool) -> Recipe:
    """The recipe of a cell; a UserError if its samples, bytes or floats, are not what it changes."""
    if augmentation is not None:
        if task.model.reads_tokens:
            raise UserError(
                "training.augment changes pictures and vectors, but these are texts; leave it out"
            )
        if augmentation.needs_images and len(task.input_shape or ()) != 3:
            raise UserError(
                "training.augment: crop, flip and colours change pictures, but the model gets vectors; use "
                "mixup alone, or a dataset of pictures without an encoder"
            )
        if augmentation.jitters and not as_bytes:
            raise UserError(
                "training.augment: brightness, contrast and saturation need pictures as bytes, but these are "
                "floats; leave them out"
            )
    return Recipe(augmentation, smoothing, task.model.standardised)
