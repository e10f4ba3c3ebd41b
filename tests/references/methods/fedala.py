"""FedALA: Zhang et al., AAAI 2023.

A client starts from s in the lower layers and from θ + (s − θ) ⊙ W in the upper ones, θ being its last model
and s what it is sent; W starts at 1, takes SGD steps on all samples and is clipped to [0, 1]. It predicts
with the same mixture of the server's new model and its own.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated


class Reference(FedAvg):
    cases = (
        Case({"eta": 0.9, "passes": 2}),
        Case({"eta": 0.7, "layers": "all", "weighting": "uniform"}, optimiser="adam"),
    )

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}
        upper = dict(self.upper(self.model))
        self.w = {
            client: {name: torch.ones_like(leaf) for name, leaf in upper.items()} for client in self.own
        }

    def upper(self, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
        every = self.settings["layers"] == "all"
        return [
            (name, leaf) for name, leaf in model.named_parameters() if every or name.startswith("classifier.")
        ]

    def client_round(self, client: int, number: int) -> nn.Module:
        x, y = self.given.data[client]
        model = copy.deepcopy(self.model)
        sent, last = dict(self.upper(self.model)), dict(self.upper(self.own[client]))
        for _ in range(self.settings["passes"]):
            self.mix(model, client, sent, last)
            leaves = dict(self.upper(model))
            gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(leaves.values()))
            for name, gradient in zip(leaves, gradients, strict=True):
                slope = gradient * (sent[name] - last[name]).detach()
                self.w[client][name] = (self.w[client][name] - self.settings["eta"] * slope).clamp(0, 1)
        self.mix(model, client, sent, last)
        self.train(model, client, number)
        self.own[client] = copy.deepcopy(model)
        return model

    def mix(
        self, model: nn.Module, client: int, sent: dict[str, nn.Parameter], last: dict[str, nn.Parameter]
    ) -> None:
        with torch.no_grad():
            for name, leaf in self.upper(model):
                leaf.copy_(last[name] + (sent[name] - last[name]) * self.w[client][name])

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        """Of each number, the share W from the server's new model and the rest from the client's own."""
        model = copy.deepcopy(self.model)
        served, kept = self.model.state_dict(), self.own[client].state_dict()
        shares = self.w[client]
        mixed = {name: share * served[name] + (1 - share) * kept[name] for name, share in shares.items()}
        model.load_state_dict({**served, **mixed})
        return evaluated(model, x)
