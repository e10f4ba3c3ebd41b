"""FedAvgM: FedAvg with momentum on the server.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
2019: v ← β v + Δ and x ← x + η v with Δ = Σ_k w_k (y_k − x). η = 1 as there, β = 0.9 as in Reddi et al.,
"Adaptive Federated Optimization", ICLR 2021; with η = 1 and β = 0 it is FedAvg exactly.
"""

from typing import ClassVar

from pydantic import Field

from methods.base import State, Tree
from methods.shared.server_optimisers import FedOpt


class FedAvgM(FedOpt):
    label: ClassVar[str] = "FedAvgM"

    server_lr: float = Field(default=1.0, gt=0)
    """η."""
    beta: float = Field(default=0.9, ge=0, lt=1)
    """β, the momentum."""

    def memory(self, zeros: Tree) -> State:
        return {"momentum": zeros}

    def step(self, memory: State, delta: Tree) -> tuple[Tree, State]:
        v = self.beta * memory["momentum"] + delta
        return self.server_lr * v, {"momentum": v}
