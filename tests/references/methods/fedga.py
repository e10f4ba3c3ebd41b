"""FedGA: Zhang et al., CVPR 2023 (FedDG-GA).

Weights start uniform. After a round, g_k = loss_k(new global model) − loss_k(own model) on the client's
validation data, and w_k ← w_k + s (1 − t/T) g_k / max|g|, clipped to [0, 1] and scaled to sum 1; a client
measures the global model when it gets it in its next round. Among the clients of a round the weights are
scaled to sum 1.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg, average_into


class Reference(FedAvg):
    cases = (
        Case({"held_out": 0.0, "step": 0.1}),
        Case({"held_out": 0.25, "step_per_client": True}, optimiser="plain"),
    )

    def start(self) -> None:
        self.shares = [1 / self.given.clients] * self.given.clients
        self.own_loss: dict[int, float] = {}
        self.gaps: dict[int, float] = {}

    def validates(self, client: int) -> list[int]:
        """The places of the samples that the client validates on: evenly spaced, or all."""
        share, count = self.settings["held_out"], self.given.size(client)
        if share == 0:
            return list(range(count))
        return [i for i in range(count) if int((i + 1) * share) > int(i * share)]

    def validation_loss(self, model: nn.Module, client: int) -> float:
        x, y = self.given.data[client]
        places = self.validates(client)
        with torch.no_grad():
            return float(F.cross_entropy(model(x[places]), y[places]))

    def client_round(self, client: int, number: int) -> nn.Module:
        if client in self.own_loss:
            self.gaps[client] = self.validation_loss(self.model, client) - self.own_loss[client]
        model = super().client_round(client, number)
        self.own_loss[client] = self.validation_loss(model, client)
        return model

    def train(self, model: nn.Module, client: int, number: int) -> None:
        if self.settings["held_out"] == 0:
            return super().train(model, client, number)
        held_out = set(self.validates(client))
        x, y = self.given.data[client]
        optimiser = self.given.optimiser(model.parameters())
        for order in self.given.orders(client, number, len(y)):
            for batch in order.split(self.given.batch_size):
                kept = [i for i in batch.tolist() if i not in held_out]
                if kept:
                    self.given.step(optimiser, F.cross_entropy(model(x[kept]), y[kept]))
        return None

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        largest = max((abs(gap) for gap in self.gaps.values()), default=0.0)
        if largest > 0:
            step = self.settings["step"] * (1 - (number - 1) / len(self.given.rounds))
            step = step / self.given.clients if self.settings["step_per_client"] else step
            moved = list(self.shares)
            for client, gap in self.gaps.items():
                moved[client] = min(1.0, max(0.0, moved[client] + step * gap / largest))
            if sum(moved) > 0:
                self.shares = [share / sum(moved) for share in moved]
        self.gaps = {}
        weights = [self.shares[client] for client in trained]
        average_into(self.model, list(trained.values()), [weight / sum(weights) for weight in weights])

    def server_state(self) -> dict[str, Tensor]:
        return {"shares": torch.tensor(self.shares)}
