"""FedExP: the server steps further than the average when the clients' updates disagree.

Jhunjhunwala, Wang and Joshi, "FedExP: Speeding Up Federated Averaging via Extrapolation", ICLR 2023,
Algorithm 1: with Δ_k = x − y_k and Δ̄ = Σ_k w_k Δ_k over the trained parameters,
η_g = max(1, Σ_k w_k ‖Δ_k‖² / (2(‖Δ̄‖² + ε))) and x ← x − η_g Δ̄. Buffers are averaged. The paper's w_k are
all 1/M (`weighting: uniform`). Since iterates oscillate, the mean of the last two predicts, as in the paper.
η_g is recorded. After round 1 the last two are the initial model and the first.
"""

from collections.abc import Mapping, Sequence

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Reply, State, Task
from methods.fedavg import FedAvg


class FedExP(FedAvg):
    label = "FedExP"
    neutral = "extrapolates as far as the updates tell it to"

    epsilon: float = Field(default=1e-3, gt=0)
    """ε, which limits the extrapolation when Δ̄ is small; the paper tunes it over {1e-3, …, 1e-1}."""
    average_last_two: bool = True
    """Predict with the mean of the last two iterates, as in the paper; else with the last."""

    def server(self, task: Task) -> State:
        state = super().server(task)
        return state | {"previous": state["model"], "step_size": torch.ones((), device=task.device)}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        average, model = self.average(replies), task.trained(server["model"])
        updates = [model - reply.content["model"] for reply in replies]
        mean = model - average
        squares = zip(self.weights(replies), (update.sqnorm() for update in updates), strict=True)
        spread = torch.stack([weight * square for weight, square in squares]).sum()
        step_size = (spread / (2 * (mean.sqnorm() + self.epsilon))).clamp(min=1)
        moved = model - step_size * mean
        return {"model": average | moved, "previous": server["model"], "step_size": step_size}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        last, previous = server["model"], server["previous"]
        return task.logits((last + previous) / 2 if self.average_last_two else last, x)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"step_size": float(server["step_size"])}
