"""FLoRA: the clients' branches are stacked, merged into the frozen weights, and begun again every round.

Wang et al., "FLoRA: Federated Fine-Tuning Large Language Models with Heterogeneous Low-Rank Adaptations",
NeurIPS 2024. A layer gives (W + R)x + s·B A x, with R = 0 at the start. Client k: FedAvg's steps on the
cross-entropy over A, B and the head, with branches of rank r_k that begin with a random A and B = 0. Server:
the A_k, each times w_k = n_k / Σ n, are stacked in rows, and the B_k in columns. Their product is Σ_k w_k
B_k A_k exactly, whatever the ranks, and R ← R + s·Σ_k w_k B_k A_k, in float64. The head is averaged.

R travels down in full instead of the stacked factors, so that clients that miss rounds need no history. All
clients of a round begin with the same A, which the server draws; in the authors' code each draws its own.
The scale s is α/r for all clients, where the authors have 2 at every rank. Bytes are those of rank r.
Pitfalls: only one factor may be weighted, or clients would count w_k². The public code, as we found it,
loads the stack with the rank of all clients, so that all must take part; and its FedIT baseline, owing to a
misspelt name, adds nothing to the first client's factors times w_1. With B = 0 the gradient of A is 0 in the
first step of every round, which costs short rounds most.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from methods.base import Reply, State, Task, Tree
from methods.modules.lora import first_factor
from methods.shared.client_ranks import ClientRanks
from methods.shared.moved_weights import MovedWeights, weight_of
from methods.shared.products import mean_products


class FLoRA(ClientRanks, MovedWeights):
    label = "FLoRA"
    neutral = "merges and restarts the branches at every setting"
    stacks_server = False

    def server(self, task: Task) -> State:
        return super().server(task) | {"restarts": torch.zeros((), dtype=torch.int64)}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        restarts = server["restarts"] + 1
        draw = task.generator("adapters", int(restarts))
        merged: dict[str, Tensor] = {}
        fresh: dict[str, Tensor] = {}
        for product in mean_products(task, replies, self.weights(replies)):
            residual = server["residual"][weight_of(product.layer)]
            step = product.scale * product.mean
            merged[weight_of(product.layer)] = (residual.double() + step).to(residual.dtype)
            first, second = averaged[product.first], averaged[product.second]
            fresh[product.first] = first_factor(first.shape[0], first.shape[1], draw).to(first)
            fresh[product.second] = torch.zeros_like(second)
        return {**server, "model": averaged | Tree(fresh), "residual": Tree(merged), "restarts": restarts}
