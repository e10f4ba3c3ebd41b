"""APFL: Deng et al., 2020, Algorithm 1.

With v̄ = α v + (1 − α) w, every step: w ← w − η ∇f(w), v ← v − η α ∇f(v̄). Before a round's steps, on its
first batch: α ← clip(α − η ⟨v − w, ∇f(v̄)⟩, 0, 1). A client predicts with α v + (1 − α) w, w the server's.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, mean_of


class Reference(FedAvg):
    cases = (
        Case({"alpha": 0.4}),
        Case({"alpha": 0.3, "adaptive": False, "weighting": "uniform"}, optimiser="adam"),
    )

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}
        self.alphas = dict.fromkeys(self.given.data, self.settings["alpha"])

    def mixed(self, client: int, w: nn.Module) -> nn.Module:
        alpha = self.alphas[client]
        mixture: nn.Module = mean_of([self.own[client], w], [alpha, 1 - alpha])
        return mixture

    def client_round(self, client: int, number: int) -> nn.Module:
        w, v = copy.deepcopy(self.model), self.own[client]
        batches = list(self.given.batches(client, number))
        if self.settings["adaptive"]:
            gradient = self.gradient(self.mixed(client, w), *batches[0])
            slope = float((flat_parameters(v) - flat_parameters(w)).detach() @ gradient)
            moved = self.alphas[client] - self.given.optimiser_settings["lr"] * slope
            self.alphas[client] = min(1.0, max(0.0, moved))
        shared, own = self.given.optimiser(w.parameters()), self.given.optimiser(v.parameters())
        for x, y in batches:
            gradient = self.alphas[client] * self.gradient(self.mixed(client, w), x, y)
            self.given.step(shared, F.cross_entropy(w(x), y))
            for parameter in v.parameters():
                parameter.grad = gradient[: parameter.numel()].view_as(parameter)
                gradient = gradient[parameter.numel() :]
            own.step()
        return w

    def gradient(self, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        parts = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        return torch.cat([part.reshape(-1) for part in parts])

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.mixed(client, self.model), x)
