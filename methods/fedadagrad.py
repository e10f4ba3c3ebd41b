"""FedAdagrad: the server takes Adagrad steps along what the clients changed.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: v ← v + Δ² and
x ← x + η m / (√v + τ) with m ← β₁ m + (1 − β₁) Δ, Δ = Σ_k w_k (y_k − x), and v = τ² at the start.
"""

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedAdagrad(AdaptiveFedOpt):
    label = "FedAdagrad"

    server_lr: float = Field(default=0.01, gt=0)
    """η, the server's learning rate; the paper tunes it over a grid that holds 0.01."""
    beta1: float = Field(default=0.0, ge=0, lt=1)
    """β₁, the momentum; 0 as in the paper, since Adagrad has none (then m = Δ)."""

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return v + squared
