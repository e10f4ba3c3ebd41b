"""Batch norm of a frozen network as part of the convolution before it: one pass less over the features."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

TOLERANCE = 1e-4
"""Largest difference that folding may make, as a share of the largest feature."""


@torch.inference_mode()
def folded(model: nn.Module, example: Tensor) -> nn.Module:
    """The network without its batch norm where that follows a convolution; unchanged if that is not certain.

    Which layers follow each other is seen on an example, and so is whether the result is the same.
    """
    pairs = _pairs(model, example)
    if not pairs:
        return model
    quick = copy.deepcopy(model)
    for convolution, norm in pairs:
        _fold(quick, convolution, norm)
    expected, found = model(example), quick(example)
    difference = float((found - expected).abs().max())
    return quick if difference <= TOLERANCE * float(expected.abs().max()) else model


def _pairs(model: nn.Module, example: Tensor) -> list[tuple[str, str]]:
    """Names of convolutions, each with the batch norm that takes its output; both are used once."""
    layers = {
        name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Conv2d) or _folds(layer)
    }
    outputs: dict[int, str] = {}
    kept: list[Tensor] = []  # so that no other tensor takes an identity that is looked up
    calls: Counter[str] = Counter()
    pairs: list[tuple[str, str]] = []

    def note(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            calls[name] += 1
            if isinstance(layer, nn.Conv2d):
                outputs[id(output)] = name
                kept.append(output)
            elif id(inputs[0]) in outputs:
                pairs.append((outputs[id(inputs[0])], name))

        return hook

    hooks = [layer.register_forward_hook(note(name)) for name, layer in layers.items()]
    try:
        model(example)
    finally:
        for hook in hooks:
            hook.remove()
    return [pair for pair in pairs if all(calls[name] == 1 for name in pair)]


def _folds(layer: nn.Module) -> bool:
    """Plain batch norm, or timm's with an activation behind it, with statistics of its own."""
    known = type(layer) is nn.BatchNorm2d or type(layer).__name__ == "BatchNormAct2d"
    return known and layer.running_mean is not None


def _fold(model: nn.Module, convolution: str, norm: str) -> None:
    conv: Any = model.get_submodule(convolution)
    batch_norm: Any = model.get_submodule(norm)
    conv.weight, conv.bias = fuse_conv_bn_weights(
        conv.weight,
        conv.bias,
        batch_norm.running_mean,
        batch_norm.running_var,
        batch_norm.eps,
        batch_norm.weight,
        batch_norm.bias,
    )
    parent, _, name = norm.rpartition(".")
    plain = type(batch_norm) is nn.BatchNorm2d
    behind = nn.Identity() if plain else nn.Sequential(batch_norm.drop, batch_norm.act)
    setattr(model.get_submodule(parent), name, behind)
