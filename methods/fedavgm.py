"""FedAvgM: FedAvg with momentum on the server.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
2019: v ← β v + Δ and x ← x + η v with Δ = Σ_k w_k (y_k − x). With η = 1 and β = 0 it is FedAvg exactly.
"""

from pydantic import Field

from methods.base import State, Tree
from methods.shared.server_optimisers import FedOpt


class FedAvgM(FedOpt):
    label = "FedAvgM"
    neutral = {"server_lr": 1.0, "beta": 0.0}

    server_lr: float = Field(default=1.0, gt=0)
    """η, the server's learning rate; 1 as in the paper."""
    beta: float = Field(default=0.9, ge=0, lt=1)
    """β, the momentum; 0.9 as in Reddi et al., "Adaptive Federated Optimization", ICLR 2021."""

    def memory(self, zeros: Tree) -> State:
        return {"momentum": zeros}

    def step(self, memory: State, delta: Tree) -> tuple[Tree, State]:
        momentum = self.beta * memory["momentum"] + delta
        return self.server_lr * momentum, {"momentum": momentum}
