"""FedAdam: the server takes Adam steps along what the clients changed.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: m ← β₁ m + (1 − β₁) Δ,
v ← β₂ v + (1 − β₂) Δ², x ← x + η m / (√v + τ) with Δ = Σ_k w_k (y_k − x) and v = τ² at the start.
β = (0.9, 0.99) and τ = 1e-3 as printed; the paper tunes η on a grid that holds the default 0.01.
"""

from typing import ClassVar

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedAdam(AdaptiveFedOpt):
    label: ClassVar[str] = "FedAdam"

    server_lr: float = Field(default=0.01, gt=0)
    """η."""
    beta2: float = Field(default=0.99, ge=0, lt=1)

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return self.beta2 * v + (1 - self.beta2) * squared
