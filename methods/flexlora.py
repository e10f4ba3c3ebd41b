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
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Message, Reply, State, Task, Tree
from methods.fedavg import FedAvg
from methods.modules.lora import SHARED, factors_of, lora_layers, require_lora
from methods.shared.products import mean_products


class FlexLoRA(FedAvg):
    label = "FlexLoRA"
    neutral = "cuts the mean of the products at every setting"

    ranks: tuple[Annotated[int, Field(gt=0)], ...] = ()
    """r_k, the clients' ranks in turn, beginning again after the last; empty: the model's rank for all."""

    def check(self, task: Task) -> None:
        require_lora(task.model)
        most = min(layer.r[SHARED] for layer in lora_layers(task.model).values())
        if self.ranks and max(self.ranks) > most:
            raise ValueError(f"has ranks up to {max(self.ranks)}, but the model's branches have {most}")

    def down(self, task: Task, server: State, client_id: int) -> Message:
        model: Tree = server["model"]
        if not self.ranks:
            return {"model": model}
        rank = self.ranks[client_id % len(self.ranks)]
        firsts, seconds = factors_of(task.model, SHARED)
        cut = {name: first_rows(model[name], rank) for name in firsts}
        cut |= {name: first_rows(model[name].mT, rank).mT for name in seconds}
        return {"model": model | Tree(cut)}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        new: dict[str, Tensor] = {}
        for product in mean_products(task, replies, self.weights(replies)):
            first, second = averaged[product.first], averaged[product.second]
            b, a = decomposed(product.mean, len(first))
            new |= {product.first: a.to(first.dtype), product.second: b.to(second.dtype)}
        return {**server, "model": averaged | Tree(new)}


def first_rows(matrix: Tensor, count: int) -> Tensor:
    """The matrix with 0 in all rows but the first few."""
    kept = torch.arange(len(matrix), device=matrix.device) < count
    return torch.where(kept[:, None], matrix, torch.zeros_like(matrix))


def decomposed(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """B and A of this rank whose product is nearest to the matrix: U Σ and Vᵀ."""
    u, sizes, v = torch.linalg.svd(matrix, full_matrices=False)
    largest = u.gather(0, u.abs().argmax(dim=0, keepdim=True))
    signs = torch.where(largest < 0, -1.0, 1.0).to(u.dtype)
    b, a = u * signs * sizes, v * signs.mT
    missing = max(0, rank - len(sizes))
    b = torch.nn.functional.pad(b[:, :rank], (0, missing))
    return b, torch.nn.functional.pad(a[:rank], (0, 0, 0, missing))
