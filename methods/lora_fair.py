"""LoRA-FAIR: the server corrects the averaged second factors towards the mean of the products.

Bian et al., "LoRA-FAIR: Federated LoRA Fine-Tuning with Aggregation and Initialization Refinement", ICCV
2025. A layer gives Wx + s·B A x with s = α/r. Client: FedAvg's steps on the cross-entropy over A, B and the
head. Server: Ā = Σ_k w_k A_k, B̄ = Σ_k w_k B_k and the head likewise, with w_k = n_k / Σ n; then layer by
layer, with ΔW = Σ_k w_k B_k A_k, the correction ΔB that minimises
    cosine:   1 − cos(ΔW, (B̄ + ΔB) Ā) + λ ‖ΔB‖,
    squares:  ‖ΔW − (B̄ + ΔB) Ā‖² + λ ‖ΔB‖², solved by ΔB = (ΔW − B̄ Ā) Āᵀ (Ā Āᵀ + λ I)⁻¹,
and clients begin the next round with Ā and B̄ + ΔB. All in float64, with Frobenius norms.

`cosine` is the paper's, with λ = 0.01 as printed; its Eq. 8 minimises a similarity, and 1 − cos is meant.
The cosine sees the direction of the product only, not its length. `squares` sees both, and is what some
other implementations solve, with λ = 0.1. The paper takes SGD, of which we know neither rate nor steps. A
fixed rate overshoots while B is small, as the slope of the cosine grows with 1/‖B‖, so we take T steps
    V = ΔB + η ∇cos,  ΔB ← V · max(0, 1 − η λ / ‖V‖),  η = ‖B̄ Ā‖² / (3 ‖Ā‖₂²),
from ΔB = 0: proximal gradient descent, which minimises the same and is stable where ‖ΔB‖ has its kink. As
the norm is not squared, there is no correction at all where the slope of the cosine is below λ, that is,
where clients agree or B is large. With λ = 0, which the paper finds harmful, B̄ + ΔB is free to leave B̄.
With T = 0 the method is FedAvg.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Reply, State, Task, Tree
from methods.fedavg import FedAvg
from methods.modules.lora import require_lora
from methods.shared.products import mean_products

TINY = 1e-30
"""Keeps a quotient of norms finite where there is nothing to correct."""


class LoRAFAIR(FedAvg):
    label = "LoRA-FAIR"
    neutral = {"server_steps": 0}

    similarity: Literal["cosine", "squares"] = "cosine"
    """What is fitted: the direction of the product, as in the paper, or the product itself."""
    lam: float = Field(default=0.01, ge=0)
    """λ, the weight of the correction's norm; 0.01 in the paper."""
    server_steps: int = Field(default=100, ge=0)
    """T, the steps to the minimum of `cosine`, of our choice; 0: no correction."""

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        if self.server_steps == 0:
            return {**server, "model": averaged}
        correction = self.along_the_mean if self.similarity == "cosine" else self.near_the_mean
        corrected = {}
        for product in mean_products(task, replies, self.weights(replies)):
            a, b = averaged[product.first].double(), averaged[product.second].double()
            new = b + correction(product.mean, b, a)
            corrected[product.second] = new.to(averaged[product.second].dtype)
        return {**server, "model": averaged | Tree(corrected)}

    def along_the_mean(self, mean: Tensor, b: Tensor, a: Tensor) -> Tensor:
        """ΔB of `cosine`."""
        target = mean / length(mean)
        rate = (b @ a).square().sum() / (3 * torch.linalg.matrix_norm(a, 2).square().clamp(min=TINY))
        delta = torch.zeros_like(b)
        for _ in range(self.server_steps):
            product = (b + delta) @ a
            size = length(product)
            unit = product / size
            moved = delta + rate / size * (target - (target * unit).sum() * unit) @ a.mT
            delta = moved * (1 - rate * self.lam / length(moved)).clamp(min=0)
        return delta

    def near_the_mean(self, mean: Tensor, b: Tensor, a: Tensor) -> Tensor:
        """ΔB of `squares`."""
        ridge = a @ a.mT + self.lam * torch.eye(len(a), dtype=a.dtype, device=a.device)
        inverse: Tensor = torch.linalg.pinv(ridge, hermitian=True)
        return (mean - b @ a) @ a.mT @ inverse


def length(matrix: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.matrix_norm(matrix)
    return norm.clamp(min=TINY)
