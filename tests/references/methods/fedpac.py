"""FedPAC: Xu et al., ICLR 2023.

Client: statistics h_c = p_c μ_c and v of z under the body it was sent; the head alone, then the body on CE
+ λ mean_i ‖z_i − c_{y_i}‖² / D; class means under the new body. Server: bodies averaged, centres by counts,
and for every client of the round the head Σ_j α_j head_j, α minimising Σ_j α_j² v_j + ‖Σ_j α_j (h_i −
h_j)‖² over the simplex.
"""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg, average_into, evaluated, mean_of


class Reference(FedAvg):
    cases = (
        Case({"lam": 0.8}, tolerance=1e-6),
        Case({"head_passes": 2, "weighting": "uniform"}, optimiser="adam", tolerance=1e-6),
    )

    def start(self) -> None:
        self.sent_heads = {client: self.given.network().classifier for client in self.given.data}
        self.own_heads = {client: self.given.network().classifier for client in self.given.data}
        self.centres: dict[int, Tensor] = {}
        self.statistics: dict[int, tuple[Tensor, Tensor]] = {}

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        model.classifier = copy.deepcopy(self.sent_heads[client])
        self.statistics[client] = self.described(model, client)
        optimiser = self.given.optimiser(model.classifier.parameters())
        for _ in range(self.settings["head_passes"]):
            for x, y in self.given.batches(client, number):
                self.given.step(optimiser, F.cross_entropy(model(x), y))
        optimiser = self.given.optimiser([*model.encoder.parameters(), *model.projector.parameters()])
        for x, y in self.given.batches(client, number):
            z = model.embed(x)
            terms = [
                (sample - self.centres[label]).square().mean() if label in self.centres else sample.sum() * 0
                for sample, label in zip(z, y.tolist(), strict=True)
            ]
            pull = self.settings["lam"] * torch.stack(terms).mean()
            self.given.step(optimiser, F.cross_entropy(model.classifier(z), y) + pull)
        self.own_heads[client] = copy.deepcopy(model.classifier)
        return model

    def described(self, model: Any, client: int) -> tuple[Tensor, Tensor]:
        """h and v."""
        x, y = self.given.data[client]
        with torch.no_grad():
            z = model.embed(x)
        h = torch.stack([z[y == c].sum(dim=0) / len(y) for c in range(self.given.classes)])
        return h, (z.square().sum(dim=1).mean() - h.square().sum()) / len(y)

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        weights = self.weights(list(trained))
        sums: dict[int, list[Tensor]] = {}
        for client, model in trained.items():
            x, y = self.given.data[client]
            with torch.no_grad():
                z = model.embed(x)
            for sample, label in zip(z, y.tolist(), strict=True):
                sums.setdefault(label, []).append(sample)
        self.centres |= {label: torch.stack(samples).mean(dim=0) for label, samples in sums.items()}
        heads = [model.classifier for model in trained.values()]
        for client in trained:
            self.sent_heads[client] = mean_of(heads, self.mixture(client, list(trained)))
        average_into(self.model.encoder, [model.encoder for model in trained.values()], weights)
        average_into(self.model.projector, [model.projector for model in trained.values()], weights)

    def mixture(self, client: int, clients: list[int]) -> list[float]:
        """The exact minimiser: the best over all sets of clients whose weights are positive."""
        away = torch.stack([(self.statistics[client][0] - self.statistics[k][0]).flatten() for k in clients])
        q = away @ away.T + torch.diag(torch.stack([self.statistics[k][1] for k in clients]))
        best, least = [0.0] * len(clients), float("inf")
        for size in range(1, len(clients) + 1):
            for chosen in combinations(range(len(clients)), size):
                solved = torch.linalg.solve(q[list(chosen)][:, list(chosen)], torch.ones(size))
                weights = torch.zeros(len(clients))
                weights[list(chosen)] = solved / solved.sum()
                value = float(weights @ q @ weights)
                if bool((weights >= 0).all()) and value < least:
                    best, least = weights.tolist(), value
        return best

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        model = copy.deepcopy(self.model)
        model.classifier = self.own_heads[client]
        return evaluated(model, x)
