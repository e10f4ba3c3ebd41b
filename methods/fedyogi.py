"""FedYogi: FedAdam whose second moment moves by steps of bounded size.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: m ← β₁ m + (1 − β₁) Δ,
v ← v − (1 − β₂) Δ² · sign(v − Δ²), x ← x + η m / (√v + τ) with Δ = Σ_k w_k (y_k − x) and v = τ² at the start.
"""

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedYogi(AdaptiveFedOpt):
    label = "FedYogi"

    server_lr: float = Field(default=0.01, gt=0)
    """η, the server's learning rate; the paper tunes it over a grid that holds 0.01."""
    beta2: float = Field(default=0.99, ge=0, lt=1)
    """β₂, how slowly the second moment follows Δ²; 0.99 as in the paper."""

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return v - (1 - self.beta2) * squared * (v - squared).map(lambda leaf: leaf.sign())
