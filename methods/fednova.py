"""FedNova: updates are divided by the work behind them before they are averaged.

Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS
2020. A client's update x − y is η times a sum of its gradients with weights a. These sum, for τ steps of SGD
with momentum ρ, to ‖a‖₁ = (τ − ρ(1 − ρ^τ)/(1 − ρ)) / (1 − ρ), which is τ without momentum. Up: y and ‖a‖₁.
Server, with weights w_k = n_k/Σn: x ← x − (Σ_k w_k ‖a_k‖₁) · Σ_k w_k (x − y_k)/‖a_k‖₁. Buffers are averaged.

So clients that take more steps do not pull the fixed point to their own minimum. If all clients take the same
number of steps it is FedAvg up to rounding. Weight decay is left out of ‖a‖₁, as in the public code. With
Adam or a learning rate per group there is no such sum, so these are refused.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from methods.base import SGD, Batches, Message, Reply, State, Task, weighted_sum
from methods.fedavg import FedAvg


class FedNova(FedAvg):
    label = "FedNova"
    neutral = "divides updates by their number of steps at every setting"
    stacks_server = False

    def check(self, task: Task) -> None:
        if not isinstance(task.optimiser, SGD) or task.optimiser.groups:
            raise ValueError(
                "needs SGD with one learning rate: set its optimiser, say to {name: sgd, lr: 0.02}"
            )

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        steps = torch.as_tensor(batches.steps, device=task.device)
        return reply | {"work": summed_weights(task.optimiser, steps)}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        average, model = self.average(replies), task.trained(server["model"])
        work = [float(reply.content["work"]) for reply in replies]
        weights = self.weights(replies)
        common = sum(weight * own for weight, own in zip(weights, work, strict=True))
        steps = [task.trained(reply.content["model"]) - model for reply in replies]
        shares = [weight * common / own for weight, own in zip(weights, work, strict=True)]
        return {**server, "model": average | (model + weighted_sum(steps, shares))}


def summed_weights(optimiser: object, steps: Tensor) -> Tensor:
    """‖a‖₁ after so many steps of SGD."""
    momentum = optimiser.momentum if isinstance(optimiser, SGD) else 0.0
    steps = steps.float()
    return (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
