"""DeepAFL: Tang et al., ICLR 2026, here in numpy and on all samples at once.

X_0 = tanh(zA + a), X_{t+1} = X_t + F_tΔ_t, F_t = σ(X_tA_t + a_t), W_t by ridge regression on X_t, and Δ_t,
the minimum of ‖Y − (X_t + F_tΔ)W_t‖² + λ‖Δ‖², from the linear system for its entries as one long vector.
"""

from __future__ import annotations

from math import erf

import numpy as np
import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg


def gelu(x: np.ndarray) -> np.ndarray:
    bent: np.ndarray = x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2
    return bent


class Reference(FedAvg):
    cases = (
        Case({"layers": 3, "layer_width": 6, "lam": 0.1, "block_lam": 0.05}, model="head"),
        Case({"layers": 2, "layer_width": 5, "lam": 0.02, "activation": "gelu"}, model="head"),
        Case({"layers": 0, "layer_width": 4}, model="head"),
    )

    def start(self) -> None:
        x = self.first(torch.cat([x for x, _ in self.given.data.values()]))
        y = np.eye(self.given.classes)[torch.cat([y for _, y in self.given.data.values()]).numpy()]
        self.deltas: list[np.ndarray] = []
        self.w = self.ridge(x, y)
        for layer in range(self.settings["layers"]):
            f = self.bent(self.random(x, layer + 1))
            # vec(FΔW) = (Wᵀ ⊗ F) vec(Δ), with the columns of Δ below each other.
            system = np.kron(self.w.T, f)
            lam = self.settings["block_lam"] * np.eye(system.shape[1])
            residual = (y - x @ self.w).flatten(order="F")
            delta = np.linalg.solve(system.T @ system + lam, system.T @ residual)
            self.deltas.append(delta.reshape(f.shape[1], x.shape[1], order="F"))
            x = x + f @ self.deltas[-1]
            self.w = self.ridge(x, y)

    def ridge(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        solution: np.ndarray = np.linalg.solve(x.T @ x + self.settings["lam"] * np.eye(x.shape[1]), x.T @ y)
        return solution

    def random(self, x: np.ndarray, layer: int) -> np.ndarray:
        """A linear layer with weights and, in the last row, biases uniform in ±1/√inputs."""
        draw = self.given.generator("random layer", layer)
        numbers = torch.rand(x.shape[1] + 1, self.settings["layer_width"], generator=draw).numpy()
        drawn: np.ndarray = (2 * numbers - 1) / np.sqrt(x.shape[1])
        return np.hstack([x, np.ones((len(x), 1))]) @ drawn

    def bent(self, x: np.ndarray) -> np.ndarray:
        return gelu(x) if self.settings["activation"] == "gelu" else np.tanh(x)

    def first(self, z: Tensor) -> np.ndarray:
        return np.tanh(self.random(z.numpy(), 0))

    def server_round(self, number: int) -> None:
        pass

    def global_model(self) -> None:
        return None

    def predict(self, x: Tensor) -> Tensor:
        here = self.first(x)
        for layer, delta in enumerate(self.deltas):
            here = here + self.bent(self.random(here, layer + 1)) @ delta
        return torch.from_numpy(here @ self.w)

    def server_state(self) -> dict[str, Tensor]:
        blocks = {"blocks": torch.from_numpy(np.stack(self.deltas))} if self.deltas else {}
        return {"weights": torch.from_numpy(self.w), **blocks}
