"""The data of the comparison: digits of scikit-learn on four clients of unequal sizes and labels."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

CLASSES = 4
LABELS = {
    0: [0, 0, 0, 2, 2, 3, 2, 0, 2],
    1: [0, 1, 1, 1, 2, 3, 3, 1, 1, 0, 2, 2, 3, 1],
    2: [2, 2, 1, 2, 1, 2],
    3: [3, 3, 2, 2, 3, 2, 2, 3, 3, 2, 3],
}
"""Client → labels of its samples. Batches of five leave last batches of one sample, client 0 has a class of
one sample, and with half of the clients the third round lacks a class that the second had."""
HELD_OUT = {0: [0, 2, 3], 1: [0, 1, 2, 3, 1], 2: [1, 2, 2], 3: [2, 3, 3, 3]}
TESTED = [0, 1, 2, 3] * 4


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Scikit-learn's digits of the first classes: 8 × 8 pixels from −1 to 1."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    chosen = y < CLASSES
    return torch.tensor(x[chosen]) / 8 - 1, torch.tensor(y[chosen])


@cache
def _drawn() -> list[dict[int, tuple[Tensor, Tensor]]]:
    """Training, held-out and test samples with the labels above, no image twice."""
    x, y = digits()
    left = {label: iter(x[y == label]) for label in range(CLASSES)}
    return [
        {
            client: (torch.stack([next(left[label]) for label in labels]), torch.tensor(labels))
            for client, labels in part.items()
        }
        for part in (LABELS, HELD_OUT, {0: TESTED})
    ]


def shaped(x: Tensor, shape: str) -> Tensor:
    """As rows of 64 pixels, as vectors of 16 numbers, or as pictures with three channels."""
    x = x.to(torch.get_default_dtype())
    if shape == "vectors":  # the means of 2 × 2 pixels
        return nn.functional.avg_pool2d(x.view(-1, 1, 8, 8), 2).flatten(1)
    return x.view(-1, 1, 8, 8).expand(-1, 3, 8, 8).contiguous() if shape == "pictures" else x


def clients(shape: str) -> dict[int, tuple[Tensor, Tensor]]:
    return {client: (shaped(x, shape), y) for client, (x, y) in _drawn()[0].items()}


def validation(shape: str) -> dict[int, tuple[Tensor, Tensor]]:
    return {client: (shaped(x, shape), y) for client, (x, y) in _drawn()[1].items()}


def test_samples(shape: str) -> tuple[Tensor, Tensor]:
    x, y = _drawn()[2][0]
    return shaped(x, shape), y
