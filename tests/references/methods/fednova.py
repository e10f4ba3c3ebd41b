"""FedNova: Wang et al., NeurIPS 2020.

x ← x − (Σ w_k a_k) Σ w_k (x − y_k) / a_k, a_k the sum of the weights that the client's gradients have in
its update: counted here step by step.
"""

from __future__ import annotations

from typing import Any

from tests.references.plain import Case, FedAvg, flat_parameters, set_parameters


class Reference(FedAvg):
    cases = (
        Case(tolerance=1e-6),  # the sums of weights are single-precision numbers
        Case({"weighting": "uniform"}, optimiser="plain", tolerance=1e-6),
    )

    def work(self, client: int, number: int) -> float:
        """What an update would be over the rate if all gradients were 1."""
        velocity = moved = 0.0
        for _ in self.given.batches(client, number):
            velocity = self.given.optimiser_settings["momentum"] * velocity + 1
            moved += velocity
        return moved

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        x = flat_parameters(self.model).detach()
        weights = self.weights(list(trained))
        works = [self.work(client, number) for client in trained]
        ends = [flat_parameters(y).detach() for y in trained.values()]
        mean = sum(w * (x - y) / a for w, y, a in zip(weights, ends, works, strict=True))
        set_parameters(self.model, x - sum(w * a for w, a in zip(weights, works, strict=True)) * mean)
