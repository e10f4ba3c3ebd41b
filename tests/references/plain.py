"""FedAvg in plain PyTorch: what the other references change one part of.

McMahan et al., AISTATS 2017, Algorithm 1.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.given import Given


@dataclass(frozen=True)
class Case:
    """How a method is compared with its reference."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Hyperparameters other than the defaults: so large that a small mistake shows."""
    model: str = "mlp"
    optimiser: str = "momentum"
    domains: Sequence[int] = ()
    participation: float | None = None
    """Share of the clients per round; None: all and half of them, or half in a method's further cases."""
    batch_size: int = 5
    dtype: torch.dtype = torch.float64
    """Of all numbers; float64, so that a difference is one of the methods, not of rounding."""
    tolerance: float = 1e-9


class FedAvg:
    """A federation: `server_round` after `server_round`; a subclass changes what its paper changes."""

    cases: ClassVar[Sequence[Case]] = (Case(),)
    exact_scores = True
    """Whether scores are compared as numbers; else only which class has the largest."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.settings = given.settings
        self.model = given.network()
        self.start()

    def start(self) -> None:
        """What server and clients keep beside the model, and exchanges before round 1."""

    def server_round(self, number: int) -> None:
        trained = {}
        for client in self.given.rounds[number - 1]:
            trained[client] = self.client_round(client, number)
        self.aggregate(trained, number)

    def client_round(self, client: int, number: int) -> Any:
        """A client's work: what it sends back."""
        model = copy.deepcopy(self.model)
        self.train(model, client, number)
        return model

    def train(self, model: nn.Module, client: int, number: int) -> None:
        optimiser = self.given.optimiser(trained_parameters(model))
        for step, (x, y) in enumerate(self.given.batches(client, number)):
            self.given.step(optimiser, self.loss(model, x, y, client, number, step))

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        return F.cross_entropy(model(x), y)

    def weights(self, clients: Sequence[int]) -> list[float]:
        sizes = [self.given.size(client) for client in clients]
        if self.settings.get("weighting") == "uniform":
            return [1 / len(clients)] * len(clients)
        return [size / sum(sizes) for size in sizes]

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        average_into(self.model, list(trained.values()), self.weights(list(trained)))

    def predict(self, x: Tensor) -> Tensor:
        """Class scores by the global model."""
        return evaluated(self.model, x)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        """Class scores that a client gives, by a model of its own if it has one."""
        return self.predict(x)

    def global_model(self) -> nn.Module | None:
        return self.model

    def server_state(self) -> dict[str, Tensor]:
        """Other numbers of the server that are compared, by the names under which ours keeps them."""
        return {}

    def private_state(self, client: int) -> dict[str, Tensor]:
        """The same for a client."""
        return {}


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def average_into(target: nn.Module, models: Sequence[nn.Module], weights: Sequence[float]) -> None:
    """Parameters and running statistics become weighted averages; integer counters are left as they are."""
    entries = target.state_dict()
    others = [model.state_dict() for model in models]
    with torch.no_grad():
        for name, entry in entries.items():
            if entry.is_floating_point():
                entry.copy_(sum(w * other[name] for w, other in zip(weights, others, strict=True)))


def flat_parameters(model: nn.Module) -> Tensor:
    """All trained parameters as one vector."""
    return torch.cat([parameter.reshape(-1) for parameter in trained_parameters(model)])


def set_parameters(model: nn.Module, values: Tensor) -> None:
    """The opposite of `flat_parameters`."""
    with torch.no_grad():
        for parameter in trained_parameters(model):
            parameter.copy_(values[: parameter.numel()].view_as(parameter))
            values = values[parameter.numel() :]


def named_parts(model: nn.Module, values: Tensor, prefix: str) -> dict[str, Tensor]:
    """A vector as long as all trained parameters, cut and named as these are."""
    parts = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parts[f"{prefix}.{name}"] = values[: parameter.numel()].view_as(parameter)
            values = values[parameter.numel() :]
    return parts


def named_state(model: nn.Module, prefix: str) -> dict[str, Tensor]:
    """Parameters and statistics of a model, named as ours name them in a client's state."""
    return {f"{prefix}.{name}": entry for name, entry in model.state_dict().items()}


def mean_of(models: Sequence[nn.Module], weights: Sequence[float]) -> Any:
    """A new model with the weighted average of the models' parameters."""
    mean = copy.deepcopy(models[0])
    average_into(mean, models, weights)
    return mean


def evaluated(model: nn.Module, x: Tensor) -> Tensor:
    """The model's output without dropout, and with batch norm's running statistics."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        scores: Tensor = model(x)
    model.train(was_training)
    return scores
