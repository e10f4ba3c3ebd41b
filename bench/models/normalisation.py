"""Group norm in place of batch norm."""

from __future__ import annotations

import math

import torch
from torch import nn

from bench.errors import UserError


def with_group_norm(network: nn.Module, groups: int) -> int:
    """Replace every batch norm of a network, keeping its scale and shift; returns how many there were."""
    found = [
        (name, layer)
        for name, layer in network.named_modules()
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm)
    ]
    for name, layer in found:
        if type(layer) is not nn.BatchNorm2d:
            raise UserError(
                f"model.norm = 'group': the network has a {type(layer).__name__}, which is more than a batch "
                "norm; choose another network, or leave out norm"
            )
        parent, _, last = name.rpartition(".")
        setattr(network.get_submodule(parent), last, _group_norm(layer, groups))
    return len(found)


def _group_norm(layer: nn.BatchNorm2d, groups: int) -> nn.GroupNorm:
    made = nn.GroupNorm(math.gcd(groups, layer.num_features), layer.num_features, eps=layer.eps)
    if layer.affine:
        with torch.no_grad():
            made.weight.copy_(layer.weight)
            made.bias.copy_(layer.bias)
    return made
