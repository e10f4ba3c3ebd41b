"""Adapters made by PEFT as methods see them: which layers have them, and how their leaves are called.

`bench/models/adapters.py` puts them on a model. The adapter `shared` trains and travels. A LoRA layer also
has an adapter `private` without factors, an empty place: a method that has private factors passes them to
`functional_call` under their names. For every other method the layer is a plain LoRA layer, and no model
that is sent can hold anything private. Nothing here imports PEFT, which takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

SHARED = "shared"
PRIVATE = "private"
ROUTER = "router"


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """Name → layer with an adapter of any kind, in the model's order."""
    return {
        name: layer for name, layer in model.named_modules() if hasattr(type(layer), "adapter_layer_names")
    }


def lora_layers(model: nn.Module) -> dict[str, Any]:
    """Name → linear layer whose adapters are plain LoRA branches, in the model's order."""
    return {name: layer for name, layer in adapted_layers(model).items() if takes_branches(layer)}


def takes_branches(layer: nn.Module) -> bool:
    """Whether the layer has a place for a private branch."""
    return PRIVATE in getattr(layer, "lora_A", ())


def factors(layer: str, adapter: str) -> tuple[str, str]:
    """The names of A and B of an adapter on a layer."""
    return f"{layer}.lora_A.{adapter}.weight", f"{layer}.lora_B.{adapter}.weight"


def factors_of(model: nn.Module, adapter: str) -> tuple[list[str], list[str]]:
    """The names of all A and of all B of an adapter, in the model's order."""
    pairs = [factors(layer, adapter) for layer in lora_layers(model)]
    return [first for first, _ in pairs], [second for _, second in pairs]


def fresh_branch(model: nn.Module, draw: torch.Generator, std: float = 0.0) -> dict[str, Tensor]:
    """A private branch for every layer: A as in a linear layer, B normal with this standard deviation."""
    leaves: dict[str, Tensor] = {}
    for name, layer in lora_layers(model).items():
        rank = layer.r[PRIVATE]
        second = std * torch.randn(layer.out_features, rank, generator=draw)
        first = first_factor(rank, layer.in_features, draw)
        leaves |= zip(factors(name, PRIVATE), (first, second), strict=True)
    return leaves


def shared_leaves(model: nn.Module) -> list[str]:
    """The names of the adapters' leaves that are trained and sent."""
    return [
        f"{name}.{leaf}"
        for name, layer in adapted_layers(model).items()
        for leaf, parameter in layer.named_parameters()
        if parameter.requires_grad
    ]


def blocks_of(layers: Iterable[str]) -> dict[str, int]:
    """Adapted layer → its block, counted from 0.

    Layers are in one block if their names agree up to the first part in which any two of all names differ:
    `encoder.1.blocks.3.attn.proj` and `encoder.1.blocks.3.mlp.fc2` are, where other blocks are adapted too.
    """
    parts = {name: name.split(".") for name in layers}
    at = next((k for k, column in enumerate(zip(*parts.values(), strict=False)) if len(set(column)) > 1), 0)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(part[at], len(numbers)) for name, part in parts.items()}


def first_factor(rank: int, width: int, generator: torch.Generator | None = None) -> Tensor:
    """A fresh A, drawn as the weights of a linear layer are."""
    bound = 1 / math.sqrt(width)
    return (2 * torch.rand(rank, width, generator=generator) - 1) * bound


def require_adapters(model: nn.Module) -> None:
    """Raise ValueError if the model has no adapters of any kind."""
    if not adapted_layers(model):
        raise ValueError(
            "needs a model with adapters: choose vit_mini, vit_lora, or transformers with an adapter"
        )


def require_lora(model: nn.Module) -> None:
    """Raise ValueError if the model has no adapters, or others than plain LoRA branches on linear layers."""
    require_adapters(model)
    if not all(map(takes_branches, adapted_layers(model).values())):
        raise ValueError(
            "needs plain LoRA adapters on linear layers: set model.adapter.name to lora or rslora"
        )
