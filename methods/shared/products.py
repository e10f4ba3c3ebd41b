"""Products B A of LoRA branches: their mean over the clients, layer by layer, and their decomposition."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from methods.base import Reply, Task
from methods.modules.lora import SHARED, factors, lora_layers


class Product(NamedTuple):
    """Σ_k w_k B_k A_k of one layer, in float64."""

    layer: str
    first: str
    """The name of A."""
    second: str
    """The name of B."""
    mean: Tensor
    scale: float
    """s, by which the layer multiplies B A."""


def mean_products(task: Task, replies: Sequence[Reply], weights: Sequence[float]) -> Iterator[Product]:
    """The layers' mean products, in the model's order; replies hold the factors under `model`."""
    models = [reply.content["model"] for reply in replies]
    for name, layer in lora_layers(task.model).items():
        first, second = factors(name, SHARED)
        total = torch.zeros((), dtype=torch.float64)
        for model, weight in zip(models, weights, strict=True):
            total = total + weight * (model[second].double() @ model[first].double())
        yield Product(name, first, second, total, layer.scaling[SHARED])


def decomposed(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """B and A of this rank whose product is nearest to the matrix: U Σ and Vᵀ.

    Signs are such that the largest entry of every column of U is positive.
    """
    u, sizes, v = torch.linalg.svd(matrix, full_matrices=False)
    largest = u.gather(0, u.abs().argmax(dim=0, keepdim=True))
    signs = torch.where(largest < 0, -1.0, 1.0).to(u.dtype)
    b, a = u * signs * sizes, v * signs.mT
    missing = max(0, rank - len(sizes))
    b = torch.nn.functional.pad(b[:, :rank], (0, missing))
    return b, torch.nn.functional.pad(a[:rank], (0, 0, 0, missing))
