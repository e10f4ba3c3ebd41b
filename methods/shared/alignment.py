"""Aggregation by agreement: the better a client's update agrees with the others, the more it counts.

Δ_k = θ_k − θ, Δ̄ = mean Δ_k, α_k = max(0, cos(Δ_k, Δ̄)), w_k = α_k / Σα, θ ← θ + Σ w_k Δ_k. Where Σα < ε, as
when the updates cancel out, the weights are uniform, and the event is counted. No client: θ stays.

Two passes over the updates give the weights, for their mean and their cosines, and the sum is a third. Every
pass holds one update at a time: memory grows with the model and not with the number of clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from methods.base import Reply, State, Task, Tree
from methods.modules.lora import require_adapters, shared_leaves

NOTHING = 1e-6
"""Values and weights below this, and a mean shorter than this fraction of an update, count as zero."""


class Alignment(BaseModel):
    """How the server weights the clients' updates: FedSDG's aggregation, and `aligned+METHOD`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    reference: Literal["mean", "leave_one_out"] = "mean"
    """What an update is compared with: the mean of all, or of all others."""
    weighting: Literal["relu", "softmax"] = "relu"
    """From cosines to weights: max(0, cos), or exp(cos / temperature)."""
    temperature: float = Field(default=0.05, gt=0)
    """T of the softmax weighting: the lower, the more the best aligned clients count."""
    cosine_on: Literal["all", "lora"] = "all"
    """The parameters that are compared: all trainable ones, or the LoRA factors without the head."""
    times_samples: bool = False
    """Multiply the weights by the clients' numbers of samples."""
    max_weight: float | None = Field(default=None, gt=0, le=1)
    """The largest weight of a client; what is cut off goes to the others. At least 1 / clients."""

    epsilon: float = Field(default=NOTHING, gt=0, exclude_if=lambda value: value == NOTHING)
    """ε, below which the sum of the cosines counts as zero."""

    def check_alignment(self, task: Task) -> None:
        """Raise ValueError where the parameters to compare do not exist."""
        if self.cosine_on == "lora":
            require_adapters(task.model)

    def start(self) -> dict[str, Tensor]:
        """The figures before the first round."""
        return {
            "clients": torch.zeros(0, dtype=torch.int64),
            "alpha": torch.zeros(0, dtype=torch.float64),
            "weights": torch.zeros(0, dtype=torch.float64),
            "fallbacks": torch.tensor(0),
        }

    def align(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        """The server's state with the next model and, under `alignment`, the figures of this round."""
        if not replies:
            return dict(server)
        theta: Tree = server["model"]
        models = [reply.content["model"] for reply in replies]
        compared = theta.only(shared_leaves(task.model)) if self.cosine_on == "lora" else task.trained(theta)
        alpha = self.agreement(compared, models)
        weights, fell_back = self.weights(alpha, [reply.samples for reply in replies])
        figures = {
            "clients": torch.tensor([reply.client for reply in replies]),
            "alpha": alpha,
            "weights": weights,
            "fallbacks": server["alignment"]["fallbacks"] + int(fell_back),
        }
        return {**server, "model": moved(theta, models, weights.tolist()), "alignment": figures}

    def agreement(self, theta: Tree, models: Sequence[Tree]) -> Tensor:
        """α of every client, over the leaves of θ."""
        names = list(theta)
        total = theta.zeros()
        for model in models:
            total = total + (model.only(names) - theta)
        cosines = []
        for model in models:
            update = model.only(names) - theta
            others = self.reference == "leave_one_out" and len(models) > 1
            cosines.append(_cosine(update, total - update if others else total))
        alpha = torch.tensor(cosines, dtype=torch.float64)
        return alpha.clamp(min=0) if self.weighting == "relu" else alpha

    def weights(self, alpha: Tensor, samples: Sequence[int]) -> tuple[Tensor, bool]:
        """Weights that sum to 1, and whether they had to be made uniform."""
        raw = alpha if self.weighting == "relu" else torch.softmax(alpha / self.temperature, dim=0)
        fell_back = bool(raw.sum() < self.epsilon)
        if fell_back:
            raw = torch.ones_like(raw)
        elif self.times_samples:
            raw = raw * torch.tensor(samples, dtype=raw.dtype)
        weights = raw / raw.sum()
        if self.max_weight is not None:
            weights = capped(weights, max(self.max_weight, 1 / len(weights)))
        return weights, fell_back and len(weights) > 1


def moved(theta: Tree, models: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """θ + Σ w_k (θ_k − θ)."""
    step = theta.zeros()
    for model, weight in zip(models, weights, strict=True):
        step = step + weight * (model - theta)
    return theta + step


def capped(weights: Tensor, most: float) -> Tensor:
    """Weights of at most `most` (1 / their number or more); the rest is spread in proportion."""
    at_most = torch.zeros_like(weights, dtype=torch.bool)
    while bool(((weights > most + 1e-12) & ~at_most).any()):
        at_most |= weights > most
        rest = 1 - most * int(at_most.sum())
        free = torch.where(at_most, 0.0, weights)
        # Those without weight get some only when all the others are full.
        free = free if bool(free.sum() > 0) else (~at_most).to(weights.dtype)
        weights = torch.where(at_most, most, free * (rest / free.sum()))
    return weights


def observed(figures: Mapping[str, Tensor]) -> dict[str, float]:
    """The figures of a round for its record."""
    clients, alpha, weights = figures["clients"].tolist(), figures["alpha"], figures["weights"]
    if not clients:
        return {}
    return {
        **_spread("alpha", alpha),
        **_spread("weight", weights),
        "fallbacks": float(figures["fallbacks"]),
        **{f"weight/{client}": weight for client, weight in zip(clients, weights.tolist(), strict=True)},
    }


def _spread(name: str, values: Tensor) -> dict[str, float]:
    """Entropy is that of the values' shares in their sum, in nats."""
    shares = values.clamp(min=0)
    shares = shares / shares.sum().clamp(min=NOTHING)
    return {
        f"{name}_mean": float(values.mean()),
        f"{name}_std": float(values.std(correction=0)),
        f"{name}_min": float(values.min()),
        f"{name}_max": float(values.max()),
        f"{name}_entropy": float(-torch.xlogy(shares, shares).sum()) + 0.0,
        f"{name}_zeros": float((values.abs() < NOTHING).sum()),
    }


def _cosine(update: Tree, reference: Tree) -> float:
    """0 where either has no direction; the reference is a sum, in which updates may cancel out."""
    length, goal, product = torch.stack([update.norm(), reference.norm(), update.dot(reference)]).tolist()
    if length == 0 or goal <= NOTHING * length:
        return 0.0
    return float(product / (length * goal))
