"""Hyperparameters that may be tensors: cells that differ in numbers alone are trained as one stack."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor

Number: TypeAlias = float | Tensor
"""A hyperparameter; in `local` and in losses it is a tensor where cells with different values are stacked."""


def is_off(number: Number) -> bool:
    """Whether the number is 0 in all cells that are computed together.

    For branches that leave out what would change nothing: `if is_off(self.mu): return plain`.
    """
    return not isinstance(number, Tensor) and number == 0
