"""FedSVD: clients train the second factors, and a decomposition of the product renews the first ones.

Lee et al., "FedSVD: Adaptive Orthogonalization for Private Federated Learning with LoRA", NeurIPS 2025. A
layer gives Wx + s·B A x with s = α/r. Client: FedAvg's steps on the cross-entropy over B and the head, with
A as it was sent. Server: B̄ = Σ_k w_k B_k with w_k = n_k / Σ n and the head likewise; then with the singular
value decomposition B̄ A = U Σ Vᵀ, A ← V_rᵀ and B ← U_r Σ_r. The product has no more than rank r, so that the
global model stays as it is, while the rows of A become orthonormal, which bounds the gradients of B, and
follow what has been learnt. In round 1, A is as it was drawn.

The decomposition is computed in float64 from the small factors, B̄ Rᵀ with Aᵀ = Q R, which gives the same as
that of the full product. Where B̄ has a lower rank, the full product leaves the last rows of A open; here
they stay in the rows of the old A. Signs are such that the largest entry of every column of U is positive.
The authors decompose after every round (`recalculate-svd-period 1`), as we do, and train with SGD at rate
0.5; their runs with differential privacy (DP-SGD at the client) are not offered. The head is averaged.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from methods.base import Reply, State, Task, Tree
from methods.modules.lora import SHARED, factors_of
from methods.shared.one_factor import OneFactor
from methods.shared.products import decomposed


class FedSVD(OneFactor):
    label = "FedSVD"
    neutral = "never trains the first factors"

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged, frozen = self.average(replies), server["frozen"]
        first, second = {}, {}
        for a, b in zip(*factors_of(task.model, SHARED), strict=True):
            new_b, new_a = orthogonalised(averaged[b].double(), frozen[a].double())
            first[a], second[b] = new_a.to(frozen[a].dtype), new_b.to(averaged[b].dtype)
        return {**server, "model": averaged | Tree(second), "frozen": Tree(first)}


def orthogonalised(b: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """The factors U Σ and Vᵀ of the same product."""
    q, r = torch.linalg.qr(a.mT)
    second, turned = decomposed(b @ r.mT, len(a))
    return second, turned @ q.mT
