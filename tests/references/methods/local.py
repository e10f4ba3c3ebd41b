"""Local training only: every client goes on with its own model, and nothing is sent."""

from __future__ import annotations

from torch import Tensor

from tests.references.plain import Case, FedAvg, evaluated, named_state


class Reference(FedAvg):
    cases = (Case(), Case(optimiser="adam"))

    def start(self) -> None:
        self.own = {client: self.given.network() for client in self.given.data}

    def server_round(self, number: int) -> None:
        for client in self.given.rounds[number - 1]:
            self.train(self.own[client], client, number)

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        return evaluated(self.own[client], x)

    def global_model(self) -> None:
        return None

    def private_state(self, client: int) -> dict[str, Tensor]:
        return named_state(self.own[client], "model")
