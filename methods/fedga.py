"""FedGA: FedAvg whose weights grow for the clients that the averaged model serves worse than their own.

Zhang et al., "Federated Domain Generalization with Generalization Adjustment", CVPR 2023 (FedDG-GA). After
every round each client compares the server's new model with its own on validation data of its own,
g_k = loss_k(global) − loss_k(own), and the server moves its weight:
    w_k ← w_k + s_t · g_k / max_j |g_j|,  clipped to [0, 1], then scaled to sum 1;  s_t = s · (1 − t/T).
The weights begin uniform, and t of T rounds are over. A client that did not take part keeps its weight; among
the clients of a round the weights are scaled to sum 1. Where the clipping would leave no weight at all, the
weights stay as they were. s = 0 and `held_out` = 0 is FedAvg with uniform weights.

A client measures the server's model when it gets it, at the start of its next round, so that no exchange is
added: the weights that average round t + 1 are moved by the gaps after round t, as in the paper. Validation
data are `held_out` of the client's own training samples, evenly spaced in their order and never trained on;
training steps leave them out of their batches, which are smaller for it. Test data are never seen.

Deviations: the public code also divides the step by the number of clients (`step_per_client`), and compares
accuracies by default where the paper has losses.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, Reply, Role, State, Task, Tree, cross_entropy, weighted_sum
from methods.fedavg import FedAvg


class FedGA(FedAvg):
    label = "FedGA"
    neutral = {"step": 0.0, "held_out": 0.0}
    stacks_server = False

    weighting: Literal["uniform"] = "uniform"
    """A client's weight before any has moved: the same for all, as in the paper."""
    step: float = Field(default=0.2, ge=0)
    """s, the largest move of a weight in the first round; 0.2 as in the public code."""
    step_per_client: bool = False
    """Divide s by the number of clients, as the public code does."""
    held_out: Annotated[float, Role.BRANCH] = Field(default=0.2, ge=0, lt=1)
    """Share of a client's samples that it validates on and does not train on; 0: it validates on all that it
    trains on. The paper takes the benchmarks' own validation sets; 0.2 is our choice."""

    def server(self, task: Task) -> State:
        return super().server(task) | {
            "shares": torch.full((task.clients,), 1 / task.clients, dtype=torch.float64),
            "rounds": torch.tensor(0),
        }

    def client(self, task: Task) -> State:
        device = task.device
        return {"own_loss": torch.zeros((), device=device), "took_part": torch.tensor(False, device=device)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        global_loss = self.validation_loss(task, message["model"], batches)
        loss = self.objective(task, client, message)
        trained = task.train(message["model"], loss, self.trained_on(batches))
        gap = torch.where(client["took_part"], global_loss - client["own_loss"], 0.0)
        kept = {
            "own_loss": self.validation_loss(task, trained, batches),
            "took_part": torch.ones_like(client["took_part"]),
        }
        return {"model": trained, "gap": gap}, kept

    def trained_on(self, batches: Batches) -> Iterator[Batch]:
        """The steps of a round without the samples that are held out."""
        if self.held_out == 0:
            yield from batches
            return
        for batch in batches:
            # What a method makes anew in later epochs is held out at the same places.
            yield batch.keeping(~self.is_held_out(batch.position % batches.samples))

    def validation_loss(self, task: Task, params: Tree, batches: Batches) -> Tensor:
        """The mean cross-entropy over the samples that are held out; 0 for a client too small to have any."""
        totals, counts = [], []
        with task.evaluation():
            for batch in batches.once():
                chosen = self.is_held_out(batch.position) if self.held_out else batch.real > 0
                held = batch.keeping(chosen)
                totals.append(cross_entropy(task.logits(params, held.x), held) * held.count)
                counts.append(held.count)
        return torch.stack(totals).sum() / torch.stack(counts).sum().clamp(min=1)

    def is_held_out(self, position: Tensor) -> Tensor:
        """True for the share of positions at which a multiple of 1 / share is reached."""
        return ((position + 1) * self.held_out).floor() > (position * self.held_out).floor()

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        shares = self.moved_shares(task, server, replies)
        parts = [float(shares[reply.client]) for reply in replies]
        parts = parts if sum(parts) > 0 else [1.0] * len(parts)
        models = [reply.content["model"] for reply in replies]
        return {
            "model": weighted_sum(models, [part / sum(parts) for part in parts]),
            "shares": shares,
            "rounds": server["rounds"] + 1,
        }

    def moved_shares(self, task: Task, server: State, replies: Sequence[Reply]) -> Tensor:
        """The weights of all clients after this round's gaps."""
        shares: Tensor = server["shares"].clone()
        gaps = torch.stack([reply.content["gap"] for reply in replies]).to(shares)
        largest = gaps.abs().max()
        left = 1 - int(server["rounds"]) / task.rounds if task.rounds else 1.0
        step = self.step * max(left, 0.0) / (task.clients if self.step_per_client else 1)
        if step == 0 or largest == 0:
            return shares
        shares[[reply.client for reply in replies]] += step * gaps / largest
        shares = shares.clamp(0, 1)
        return shares / shares.sum() if shares.sum() > 0 else server["shares"]

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        shares = server["shares"].tolist()
        each = {f"weight/{number}": share for number, share in enumerate(shares)}
        return {"weight_min": min(shares), "weight_max": max(shares), **each}
