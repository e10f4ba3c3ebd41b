"""The samples that speed is measured on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from methods.core.batches import Samples

CLASSES = 10


def digits() -> list[Samples]:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))[:1600]
    return dealt(torch.from_numpy(x[order] / 16).float(), torch.from_numpy(y[order]).long(), 100)


def synth() -> list[Samples]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(100 * 320, 64, generator=draw)
    return dealt(x, (x @ torch.randn(64, CLASSES, generator=draw)).argmax(dim=1), 100)


def embeddings() -> list[Samples]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(100 * 320, 512, generator=draw)
    return dealt(x, (x @ torch.randn(512, CLASSES, generator=draw)).argmax(dim=1), 100)


def images(sizes: tuple[int, ...]) -> list[Samples]:
    draw = torch.Generator().manual_seed(0)

    def client(size: int) -> Samples:
        x = torch.randint(0, 256, (size, 3, 32, 32), generator=draw, dtype=torch.uint8)
        x = x.contiguous(memory_format=torch.channels_last)
        return Samples(x, torch.randint(0, CLASSES, (size,), generator=draw))

    return [client(size) for size in sizes]


def dealt(x: Tensor, y: Tensor, clients: int) -> list[Samples]:
    return [Samples(*part) for part in zip(x.chunk(clients), y.chunk(clients), strict=True)]
