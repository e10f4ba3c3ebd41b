"""FedAdagrad: the server takes Adagrad steps along what the clients changed.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: v ← v + Δ² and
x ← x + η m / (√v + τ) with m ← β₁ m + (1 − β₁) Δ, Δ = Σ_k w_k (y_k − x), and v = τ² at the start.
β₁ = 0, as Adagrad has no momentum (then m = Δ), and τ = 1e-3; the paper tunes η on a grid that holds the
default 0.01.
"""

from typing import ClassVar

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedAdagrad(AdaptiveFedOpt):
    label: ClassVar[str] = "FedAdagrad"

    server_lr: float = Field(default=0.01, gt=0)
    """η."""
    beta1: float = Field(default=0.0, ge=0, lt=1)

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return v + squared
