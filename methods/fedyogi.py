"""FedYogi: FedAdam whose second moment moves by steps of bounded size.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2: m ← β₁ m + (1 − β₁) Δ,
v ← v − (1 − β₂) Δ² · sign(v − Δ²), x ← x + η m / (√v + τ) with Δ = Σ_k w_k (y_k − x) and v = τ² at the start.
β = (0.9, 0.99) and τ = 1e-3 as printed; the paper tunes η on a grid that holds the default 0.01.
"""

from typing import ClassVar

from pydantic import Field

from methods.base import Tree
from methods.shared.server_optimisers import AdaptiveFedOpt


class FedYogi(AdaptiveFedOpt):
    label: ClassVar[str] = "FedYogi"

    server_lr: float = Field(default=0.01, gt=0)
    """η."""
    beta2: float = Field(default=0.99, ge=0, lt=1)

    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        return v - (1 - self.beta2) * squared * (v - squared).map(lambda leaf: leaf.sign())
