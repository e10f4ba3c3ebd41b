"""Low-rank branches on frozen linear layers: a shared one that trains, room for a private one with a gate."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SHARED = ("shared_a", "shared_b")
PRIVATE = ("private_a", "private_b")
GATE = "gate"


class AdaptedLinear(nn.Module):
    """Wx + s·B_g A_g x, and where a private branch is given + m·s·B_p A_p x, with s = alpha / rank.

    The private factors and the gate m are empty places in the model. A method that has them passes them to
    `functional_call` under their names; for every other method this is a plain LoRA layer, and no model that
    is sent can hold anything private. PEFT has no such places: its adapters are parameters of the model, and
    the factor that a gate would have to be is a number in a dictionary, out of `functional_call`'s reach.
    """

    private_a: Tensor | None
    private_b: Tensor | None
    gate: Tensor | None

    def __init__(self, frozen: nn.Linear, rank: int, alpha: float, block: int) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.rank, self.scale, self.block = rank, alpha / rank, block
        self.shared_a = nn.Parameter(first_factor(rank, frozen.in_features))
        self.shared_b = nn.Parameter(torch.zeros(frozen.out_features, rank))
        for name in (*PRIVATE, GATE):
            self.register_parameter(name, None)

    def forward(self, x: Tensor) -> Tensor:
        a: Tensor = self.shared_a
        b = self.scale * self.shared_b
        if self.private_a is not None and self.private_b is not None and self.gate is not None:
            # Side by side, the factors give the sum of the two branches in one product.
            a = torch.cat([a, self.private_a])
            b = torch.cat([b, self.gate * self.scale * self.private_b], dim=1)
        frozen: Tensor = self.frozen(x)
        return frozen + F.linear(F.linear(x, a), b)


def first_factor(rank: int, width: int, generator: torch.Generator | None = None) -> Tensor:
    """A fresh A, drawn as the weights of a linear layer are."""
    bound = 1 / math.sqrt(width)
    return (2 * torch.rand(rank, width, generator=generator) - 1) * bound


def adapted_layers(model: nn.Module) -> dict[str, AdaptedLinear]:
    """Name → layer, in the model's order."""
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, AdaptedLinear)}


def shared_leaves(model: nn.Module) -> list[str]:
    """The names of the factors that are trained and sent."""
    return [f"{layer}.{leaf}" for layer in adapted_layers(model) for leaf in SHARED]


def require_adapters(model: nn.Module) -> None:
    if not adapted_layers(model):
        raise ValueError("needs a model with LoRA branches: choose vit_mini or vit_lora")
