"""What LoRA branches compute together: the mean of the clients' products B A, layer by layer."""

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
