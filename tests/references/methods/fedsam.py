"""FedSAM: Qu et al., ICML 2022, Algorithm 1: the gradient at y + ρ g / ‖g‖, g the gradient at y."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.references.plain import Case, FedAvg, flat_parameters, set_parameters


class Reference(FedAvg):
    cases = (Case({"rho": 0.2}), Case({"weighting": "uniform"}, optimiser="adam"))

    def train(self, model: nn.Module, client: int, number: int) -> None:
        optimiser = self.given.optimiser(model.parameters())
        for x, y in self.given.batches(client, number):
            here = flat_parameters(model).detach().clone()
            gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
            g = torch.cat([gradient.reshape(-1) for gradient in gradients])
            set_parameters(model, here + self.settings["rho"] * g / (g.norm() + 1e-12))
            optimiser.zero_grad()
            F.cross_entropy(model(x), y).backward()
            set_parameters(model, here)
            optimiser.step()
