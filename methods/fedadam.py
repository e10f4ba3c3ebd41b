"""FedAdam: the server takes Adam steps along what the clients changed.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: m ← β₁ m + (1 − β₁) Δ,
v ← β₂ v + (1 − β₂) Δ², x ← x + η m / (√v + τ) with Δ = Σ_k w_k (y_k − x) and v = τ² at the start.
"""

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedAdam(AdaptiveFedOpt):
    label = "FedAdam"

    server_lr: float = Field(default=0.01, gt=0)
    """η, the server's learning rate; the paper tunes it over a grid that holds 0.01."""
    beta2: float = Field(default=0.99, ge=0, lt=1)
    """β₂, how slowly the second moment follows Δ²; 0.99 as in the paper."""

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return self.beta2 * v + (1 - self.beta2) * squared
