"""FlexLoRA: the server averages the products of the factors, and cuts the mean to every client's rank.

Bai et al., "Federated Fine-tuning of Large Language Models under Heterogeneous Tasks and Client Resources",
NeurIPS 2024. A layer gives Wx + s·B A x. Client k: FedAvg's steps on the cross-entropy over A, B and the
head, with branches of rank r_k. Server: ΔW = Σ_k w_k B_k A_k with w_k = n_k / Σ n, and its singular value
decomposition ΔW = U Σ Vᵀ in float64. Down to client k: the first r_k columns of B = U Σ and the first r_k
rows of A = Vᵀ; signs are such that the largest entry of every column of U is positive. The head is averaged.
The server's own model has the model's rank r; in round 1 clients get the first r_k rows of the initial A.

Tensors have the same shape for all clients here: what is beyond r_k is 0 in A and in B, where the gradients
are 0, too, so that it stays 0. Bytes are those of rank r. The scale s is α/r for all clients.
"""

from collections.abc import Sequence

from torch import Tensor

from methods.base import Reply, State, Task, Tree
from methods.shared.client_ranks import ClientRanks
from methods.shared.products import decomposed, mean_products


class FlexLoRA(ClientRanks):
    label = "FlexLoRA"
    neutral = "cuts the mean of the products at every setting"

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        new: dict[str, Tensor] = {}
        for product in mean_products(task, replies, self.weights(replies)):
            first, second = averaged[product.first], averaged[product.second]
            b, a = decomposed(product.mean, len(first))
            new |= {product.first: a.to(first.dtype), product.second: b.to(second.dtype)}
        return {**server, "model": averaged | Tree(new)}
