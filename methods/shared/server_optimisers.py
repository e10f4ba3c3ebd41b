"""The FedOPT family: what the clients changed is a gradient, and the server has an optimiser of its own.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithms 1 and 2.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from pydantic import Field

from methods.base import Reply, State, Task, Tree
from methods.shared.averaging import Averaging


class FedOpt(Averaging, ABC):
    """x ← x + step(Δ) with the pseudo-gradient Δ = Σ_k w_k (y_k − x). Buffers are averaged, not stepped."""

    server_lr: float = Field(gt=0)
    """η, the server's learning rate."""

    @abstractmethod
    def memory(self, zeros: Tree) -> State:
        """What the optimiser remembers, at the start."""

    @abstractmethod
    def step(self, memory: State, delta: Tree) -> tuple[Tree, State]:
        """What is added to x, and what is remembered from now on."""

    def server(self, task: Task) -> State:
        return super().server(task) | self.memory(task.trained(task.initial).zeros())

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        average = self.average(replies)
        delta = task.trained(average - server["model"])
        step, memory = self.step(server, delta)
        # x + step seen from the average, so that a step of exactly Δ is FedAvg to the last bit.
        return {"model": average | (task.trained(average) + (step - delta)), **memory}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {f"{name}_norm": float(tree.norm()) for name, tree in server.items() if name != "model"}


class AdaptiveFedOpt(FedOpt, ABC):
    """m ← β₁ m + (1 − β₁) Δ and x ← x + η m / (√v + τ); the methods differ in how v follows Δ².

    v starts at τ², the least that Algorithm 2 allows. There is no bias correction, as in the paper.
    """

    neutral = "scales every coordinate by its past updates at every setting"

    beta1: float = Field(default=0.9, ge=0, lt=1)
    """β₁, the momentum; 0.9 as in the paper."""
    tau: float = Field(default=1e-3, gt=0)
    """τ, how little adaptivity there is where updates are small; 1e-3 as in the paper."""

    @abstractmethod
    def second_moment(self, v: Tree, squared: Tree) -> Tree:
        """The next v, given Δ²."""

    def memory(self, zeros: Tree) -> State:
        return {"momentum": zeros, "second_moment": zeros + self.tau**2}

    def step(self, memory: State, delta: Tree) -> tuple[Tree, State]:
        momentum = self.beta1 * memory["momentum"] + (1 - self.beta1) * delta
        second_moment = self.second_moment(memory["second_moment"], delta * delta)
        step = self.server_lr * momentum / (second_moment.map(lambda leaf: leaf.sqrt()) + self.tau)
        return step, {"momentum": momentum, "second_moment": second_moment}
