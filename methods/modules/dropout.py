"""Dropout whose numbers come from the key of the training step, so that every executor draws the same."""

from __future__ import annotations

from torch import Tensor, nn

from methods.core.random import step_key, uniform

_STREAMS = 2000
"""The first stream of random numbers for dropout, far from those of losses and augmentation."""


class Dropout(nn.Module):
    """Sets values to 0 with this probability in training, and scales the others up to make good for it."""

    def __init__(self, probability: float, number: int = 0) -> None:
        """`number` tells the layers of one model apart."""
        super().__init__()
        self.probability, self.number = probability, number

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0:
            return x
        numbers = uniform(step_key(), _STREAMS + self.number, x.shape, x.device)
        return x * (numbers >= self.probability) / (1 - self.probability)
