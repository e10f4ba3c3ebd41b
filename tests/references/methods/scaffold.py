"""SCAFFOLD: Karimireddy et al., ICML 2020, Algorithm 1 with option II.

Client: y ← y − η (g(y) − c_i + c), then c_i⁺ = c_i − c + (x − y) / (S η) after S steps.
Server: x ← x + η_g mean(y − x), c ← c + (1/K) Σ (c_i⁺ − c_i) with K all clients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg, flat_parameters, named_parts, set_parameters


class Reference(FedAvg):
    cases = (Case(optimiser="plain"), Case({"server_lr": 0.7}, optimiser="plain"))

    def start(self) -> None:
        zero = torch.zeros_like(flat_parameters(self.model))
        self.control = zero
        self.controls = dict.fromkeys(self.given.data, zero)

    def client_round(self, client: int, number: int) -> tuple[Tensor, Tensor]:
        rate = self.given.optimiser_settings["lr"]
        x = flat_parameters(self.model).detach()
        model = self.given.network()
        y, steps = x.clone(), 0
        for step, (images, labels) in enumerate(self.given.batches(client, number)):
            set_parameters(model, y)
            loss = self.loss(model, images, labels, client, number, step)
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            gradient = torch.cat([part.reshape(-1) for part in gradients])
            y = y - rate * (gradient - self.controls[client] + self.control)
            steps += 1
        control = self.controls[client] - self.control + (x - y) / (steps * rate)
        change = control - self.controls[client]
        self.controls[client] = control
        return y - x, change

    def aggregate(self, trained: dict[int, tuple[Tensor, Tensor]], number: int) -> None:
        mean = sum(moved for moved, _ in trained.values()) / len(trained)
        x = flat_parameters(self.model).detach() + self.settings["server_lr"] * mean
        set_parameters(self.model, x)
        self.control = self.control + sum(change for _, change in trained.values()) / self.given.clients

    def server_state(self) -> dict[str, Tensor]:
        return named_parts(self.model, self.control, "control")

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_parts(self.model, self.controls[client], "control")
