"""Per-FedAvg: Fallah et al., NeurIPS 2020.

D: the samples of a batch at even places, D′: those at odd ones. w̃ = w − α ∇f(w; D), u = ∇f(w̃; D′), and
the optimiser steps along u, or along u − α [∇f(w + δu; D) − ∇f(w − δu; D)] / (2δ). A client's own model is
what it was sent after plain SGD steps of rate α on the round's batches.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, evaluated, flat_parameters, set_parameters


class Reference(FedAvg):
    cases = (
        Case({"alpha": 0.1, "delta": 0.01}),
        Case({"alpha": 0.1, "variant": "first_order", "weighting": "uniform"}, optimiser="adam"),
    )

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}

    def gradient(self, at: Tensor, x: Tensor, y: Tensor) -> Tensor:
        if not len(y):
            return torch.zeros_like(at)
        model = self.given.network()
        set_parameters(model, at)
        parts = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        return torch.cat([part.reshape(-1) for part in parts])

    def train(self, model: nn.Module, client: int, number: int) -> None:
        alpha, delta = self.settings["alpha"], self.settings["delta"]
        optimiser = self.given.optimiser(model.parameters())
        for x, y in self.given.batches(client, number):
            even, odd = (x[::2], y[::2]), (x[1::2], y[1::2])
            w = flat_parameters(model).detach()
            u = self.gradient(w - alpha * self.gradient(w, *even), *odd)
            g = u
            if self.settings["variant"] == "hessian_free":
                curved = self.gradient(w + delta * u, *even) - self.gradient(w - delta * u, *even)
                g = u - alpha * curved / (2 * delta)
            for parameter in model.parameters():
                parameter.grad = g[: parameter.numel()].view_as(parameter)
                g = g[parameter.numel() :]
            optimiser.step()

    def client_round(self, client: int, number: int) -> nn.Module:
        own = copy.deepcopy(self.model)
        optimiser = torch.optim.SGD(own.parameters(), self.settings["alpha"])
        for x, y in self.given.batches(client, number):
            optimiser.zero_grad()
            F.cross_entropy(own(x), y).backward()
            optimiser.step()
        self.own[client] = own
        return super().client_round(client, number)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.own[client], x)
