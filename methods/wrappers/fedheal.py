"""FedHEAL: clients send the changes that keep their direction, and the server favours those who change most.

Chen, Huang and Ye, "Fair Federated Learning under Domain Skew with Local Consistency and Domain Diversity",
CVPR 2024, around any method whose server averages models; numbers and rules are those of the public code.

Client, after its training from x to y: h is the share of its earlier rounds in which x − y ≥ 0, entry by
entry of the trained parameters. An entry is consistent if h > `threshold` where now x − y ≥ 0, and if 1 − h
> `threshold` elsewhere; in the client's first round all are. It sends y with the entries that are not
consistent set back to x, and then counts this round into h. h stays private.

Server, with Δ_k = x − y_k as sent and M clients: d_k is the sum over the parameter tensors of ‖Δ_k‖₂; δ_k ←
(1 − β)·δ_k + β·d_k / Σ_j d_j and p_k ← p_k + δ_k, where a new client has p = 1/M and δ = 0; both belong to
the client and last. w_k = p_k / Σ_j p_j over the round's clients. Entry by entry, the change is the mean
with weights w_k over the clients that changed the entry; where none did, x stays. Buffers are averaged with
w_k.

Deviations: the server takes an entry that came back as it was sent for one that was set back, so that no
masks travel. h counts the client's own rounds, where the public code counts all rounds; they are the same if
all clients take part. Σ_j d_j is over the clients of the round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from methods.base import Batches, Message, Reply, State, Task, Tree, weighted_sum
from methods.wrappers._averages import in_place_of, require_average, sent_model
from methods.wrappers.base import Wrapper


class FedHEAL(Wrapper):
    short_label = "FedHEAL"
    neutral = "weighs clients by how much they change at every setting"
    stacks_server = False

    threshold: float = Field(default=0.3, ge=0, lt=1)
    """τ, how often a parameter must have changed in the same direction before; 0.3 as in the public code."""
    beta: float = Field(default=0.4, ge=0, le=1)
    """β, how quickly weights follow the distances; 0.4 as in the public code."""

    @model_validator(mode="after")
    def _replaces_an_average(self) -> Self:
        require_average(self.inner, "heal the average of")
        return self

    def client(self, task: Task) -> State:
        history = task.trained(task.initial).zeros()
        return super().client(task) | {"falls": history, "rounds": torch.zeros((), device=task.device)}

    def server(self, task: Task) -> State:
        nobody = torch.zeros(task.clients, device=task.device)
        return super().server(task) | {"weights": nobody, "changes": nobody}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        x, y = (task.trained(each["model"]) for each in (message, reply))
        falls, rounds = client["falls"], client["rounds"]
        falling = x.map(lambda before, after: (before - after >= 0).to(before.dtype), y)
        agreement = falling.map(lambda now, share: torch.where(now > 0, share, 1 - share), falls)
        sent = agreement.map(
            lambda share, before, after: torch.where((share > self.threshold) | (rounds < 1), after, before),
            x,
            y,
        )
        history = {"falls": (falls * rounds + falling) / (rounds + 1), "rounds": rounds + 1}
        return reply | {"model": reply["model"] | sent}, kept | history

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        x = task.trained(sent_model(self.trained, task, server["inner"], replies[0]))
        models = [reply.content["model"] for reply in replies]
        updates = [x - model for model in models]
        weights, changes = self.renewed(server, [reply.client for reply in replies], updates)
        at = torch.tensor([reply.client for reply in replies], device=weights.device)
        shares = (weights[at] / weights[at].sum()).tolist()
        average = weighted_sum(models, shares)
        changed = [update.map(lambda leaf: (leaf != 0).to(leaf.dtype)) for update in updates]
        total, counted = weighted_sum(updates, shares), weighted_sum(changed, shares)
        moved = x.map(
            lambda before, change, weight: torch.where(
                weight > 0, before - change / weight.clamp(min=1e-12), before
            ),
            total,
            counted,
        )
        inner = self.trained.aggregate(task, server["inner"], [in_place_of(replies, average | moved)])
        return {**server, "inner": inner, "weights": weights, "changes": changes}

    def renewed(
        self, server: State, clients: Sequence[int], updates: Sequence[Tree]
    ) -> tuple[Tensor, Tensor]:
        """p and δ of all clients after a round."""
        distances = torch.stack([sum_of_lengths(update) for update in updates])
        weights, changes = server["weights"].clone(), server["changes"].clone()
        parts = distances / distances.sum().clamp(min=torch.finfo(distances.dtype).tiny)
        for client, part in zip(clients, parts, strict=True):
            changes[client] = (1 - self.beta) * changes[client] + self.beta * part
            before = weights[client] if weights[client] > 0 else 1 / len(clients)
            weights[client] = before + changes[client]
        return weights, changes

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        own = {"largest_weight": float(server["weights"].max())} if client is None else {}
        return {**own, **super().observe(task, server, client)}


def sum_of_lengths(update: Tree) -> Tensor:
    """Σ ‖Δ‖₂ over the tensors of an update."""
    return torch.stack([leaf.norm() for leaf in update.values()]).sum()
