"""GGEUR: Ma et al., CVPR 2025: any method, on samples added along the axes of all clients' data.

Σ_i is the covariance of class i over the pooled samples (of clients that have enough of the class to tell),
with eigenvalues λ and eigenvectors V. New samples are X + (ε √λ) Vᵀ. One domain: every class that a client
has is filled up around its own samples, taken in turn. Several: step 1 does so, step 2 adds samples around
every other domain's mean.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case


def around(inner: Any) -> Any:
    plain = any(case.optimiser == "plain" for case in inner.cases[:1])
    how: dict[str, Any] = {
        "model": "head",
        "optimiser": "plain" if plain else "momentum",
        "dtype": torch.float32,  # axes are sent as such
        "tolerance": 1e-5,
    }

    class Reference(inner):  # type: ignore[misc]
        cases = (
            Case({"samples_per_class": 5}, **how),
            Case({"samples_per_class": 6, "noise_scale": "linear", "top_k": 3, "ridge": 0.1}, **how),
            Case({"step1_samples": 5, "step2_samples": 2}, domains=(0, 1, 1, 2), **how),
        )

        def __init__(self, given: Any) -> None:
            self.geometry = Geometry(given)
            made = {client: self.geometry.augmented(client) for client in given.data}
            super().__init__(given.inside(data=made))

    return Reference


class Geometry:
    """What the server learns from the clients' statistics, and what clients make of it."""

    def __init__(self, given: Any) -> None:
        self.given, self.settings = given, given.settings
        self.axes: dict[int, tuple[Tensor, Tensor]] = {}
        for label in range(given.classes):
            pooled = [self.own(client, label) for client in given.data if self.tells(client, label)]
            if pooled:
                self.axes[label] = self.axes_of(torch.cat(pooled))

    def own(self, client: int, label: int) -> Tensor:
        x, y = self.given.data[client]
        return x[y == label]

    def tells(self, client: int, label: int) -> bool:
        return len(self.own(client, label)) >= self.settings["min_class_count"]

    def axes_of(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(pooled.double().T.cov(correction=0))
        values = values.clamp(min=0).flip(0)[: self.settings["top_k"]]
        vectors = vectors.flip(1)[:, : self.settings["top_k"]]
        return (values + self.settings["ridge"]).to(pooled), vectors.to(pooled)

    def domain_means(self, client: int, label: int) -> list[Tensor]:
        """The means of the class in the other domains."""
        domains = self.given.domains
        means = []
        for domain in sorted(set(domains) - {domains[client]}):
            there = [k for k in self.given.data if domains[k] == domain and self.tells(k, label)]
            if there:
                means.append(torch.cat([self.own(k, label) for k in there]).mean(dim=0))
        return means

    def augmented(self, client: int) -> tuple[Tensor, Tensor]:
        """The client's own samples, then the new ones class by class."""
        several = len(set(self.given.domains)) > 1
        target = self.settings["step1_samples" if several else "samples_per_class"]
        draw = self.given.generator("samples", client)
        x, y = self.given.data[client]
        xs, ys = [x], [y]
        for label in range(self.given.classes):
            own = self.own(client, label)
            missing = max(0, target - len(own)) if len(own) and label in self.axes else 0
            centres = [own[i % len(own)] for i in range(missing)]
            if several and label in self.axes:
                centres += [
                    m for m in self.domain_means(client, label) for _ in range(self.settings["step2_samples"])
                ]
            if not centres:
                continue
            values, vectors = self.axes[label]
            sizes = values if self.settings["noise_scale"] == "linear" else values.sqrt()
            noise = torch.randn(len(centres), len(values), generator=draw)
            xs.append(torch.stack(centres) + (noise * sizes) @ vectors.T)
            ys.append(torch.full((len(centres),), label))
        return torch.cat(xs), torch.cat(ys)
