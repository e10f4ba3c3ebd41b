"""Agnostic FL: FedAvg whose weights move to the clients with the largest losses.

Mohri, Sivek and Suresh, "Agnostic Federated Learning", ICML 2019 (AFL there, Stochastic-AFL), seeks
min_x max_λ Σ_k λ_k F_k(x), where λ is any distribution over the clients. Gradient steps in both:
    x ← x − η Σ_k λ_k ∇F_k(x),  λ ← nearest point of the simplex to λ + γ (F_1(x), …, F_K(x)),
and the mean of all x after round 1, 2, … predicts. λ begins uniform. Clients send their model and F_k(x), the
mean loss of the model that they were sent over all of their training samples; both steps start at that x.

Clients take the suite's local steps, x ← Σ_k λ_k y_k: with one step on all of a client's samples this is the
paper's algorithm, with more its extension to local steps. The paper estimates F_k on one mini-batch. A client
that did not take part keeps its λ_k until the projection, and λ is scaled to sum 1 over the clients of a
round (all the same, if it is 0 for all of them). With many rounds the mean of all x lags behind;
the accuracy of the last x is recorded, too. γ = 0 is FedAvg with uniform weights.

One client that cannot be served well, say one with wrong labels, gets all of the weight: that is what the
minimax asks for. Domains instead of clients, as in the paper's experiments, are clients of one domain each.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, FedAlgorithm, Message, Reply, State, Task, is_off, weighted_sum
from methods.fedavg import FedAvg
from methods.shared.own_loss import own_loss
from methods.shared.simplex import onto_simplex

Prediction = Literal["averaged", "last"]


class Agnostic(FedAvg):
    label = "Agnostic FL"
    neutral = {"step": 0.0, "prediction": "last"}
    stacks_server = False

    weighting: Literal["uniform"] = "uniform"
    """A client's weight before any has moved: the same for all."""
    step: float = Field(default=0.1, ge=0)
    """γ, the step of the weights; 0.1 in the public code of q-FedAvg for this method on Adult."""
    prediction: Prediction = "averaged"
    """The model that predicts: the mean of those after all rounds, as in the paper, or the last one."""

    def server(self, task: Task) -> State:
        return super().server(task) | {
            "mean": task.initial,
            "shares": torch.full((task.clients,), 1 / task.clients, dtype=torch.float64),
            "rounds": torch.tensor(0),
        }

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        loss = own_loss(task, message["model"], batches)
        reply, kept = super().local(task, client, message, batches)
        return reply | {"loss": loss}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        rounds = server["rounds"] + 1
        taking_part = [reply.client for reply in replies]
        if is_off(self.step):
            model = self.average(replies)
        else:
            parts = server["shares"][taking_part].tolist()
            parts = parts if sum(parts) > 0 else [1.0] * len(parts)
            models = [reply.content["model"] for reply in replies]
            model = weighted_sum(models, [part / sum(parts) for part in parts])
        losses = torch.stack([reply.content["loss"] for reply in replies])
        raised: Tensor = server["shares"].clone()
        raised[taking_part] += self.step * losses.to(raised)
        mean = model if rounds == 1 else server["mean"] + (model - server["mean"]) / int(rounds)
        return {"model": model, "mean": mean, "shares": onto_simplex(raised), "rounds": rounds}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return task.logits(server["mean" if self.prediction == "averaged" else "model"], x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        other: Prediction = "last" if self.prediction == "averaged" else "averaged"
        return {other: self.model_copy(update={"prediction": other})}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        shares = server["shares"].tolist()
        each = {f"weight/{number}": share for number, share in enumerate(shares)}
        return {"weight_min": min(shares), "weight_max": max(shares), **each}
