"""Clients whose LoRA branches have ranks of their own."""

from abc import ABC
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Message, State, Task, Tree
from methods.modules.lora import SHARED, factors_of, lora_layers, require_lora
from methods.shared.averaging import Averaging


class ClientRanks(Averaging, ABC):
    """A method whose server sends every client the first r_k rows of A and columns of B.

    Tensors have the same shape for all clients: what is beyond r_k is 0 in A and in B, where the gradients
    are 0, too, so that it stays 0.
    """

    ranks: tuple[Annotated[int, Field(gt=0)], ...] = ()
    """r_k, the clients' ranks in turn, beginning again after the last; empty: the model's rank for all."""

    def check(self, task: Task) -> None:
        require_lora(task.model)
        most = min(layer.r[SHARED] for layer in lora_layers(task.model).values())
        if self.ranks and max(self.ranks) > most:
            raise ValueError(f"has ranks up to {max(self.ranks)}, but the model's branches have {most}")

    def down(self, task: Task, server: State, client_id: int) -> Message:
        message = super().down(task, server, client_id)
        if not self.ranks:
            return message
        model: Tree = message["model"]
        rank = self.ranks[client_id % len(self.ranks)]
        firsts, seconds = factors_of(task.model, SHARED)
        cut = {name: first_rows(model[name], rank) for name in firsts}
        cut |= {name: first_rows(model[name].mT, rank).mT for name in seconds}
        return message | {"model": model | Tree(cut)}


def first_rows(matrix: Tensor, count: int) -> Tensor:
    """The matrix with 0 in all rows but the first few."""
    kept = torch.arange(len(matrix), device=matrix.device) < count
    return torch.where(kept[:, None], matrix, torch.zeros_like(matrix))
