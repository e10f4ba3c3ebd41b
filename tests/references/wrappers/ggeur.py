"""GGEUR: Ma et al., CVPR 2025: any method, on samples added along the axes of all clients' data.

Σ_i is the covariance of class i over the pooled samples (of clients that have enough of the class to tell),
with eigenvalues λ and eigenvectors V. New samples are X + (ε √λ) Vᵀ. One domain: every class that a client
has is filled up around its own samples, taken in turn. Several: step 1 does so, step 2 adds samples around
every other domain's mean.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.methods.fedavg import Reference as FedAvg
from tests.references.plain import Case, mean_of, named_state


def around(inner: Any) -> Any:
    plain = any(case.optimiser == "plain" for case in inner.cases[:1])
    how: dict[str, Any] = {
        "model": "head",
        "optimiser": "plain" if plain else "momentum",
        "dtype": torch.float32,  # axes are sent as such
        "tolerance": 1e-5,
    }

    class Reference(inner):  # type: ignore[misc]
        cases: ClassVar[Sequence[Case]] = (
            Case({"samples_per_class": 5}, **how),
            Case({"samples_per_class": 6, "noise_scale": "linear", "top_k": 3, "ridge": 0.1}, **how),
            Case({"samples_per_original": 2}, **how),
            Case({"step1_samples": 5, "step2_samples": 2}, domains=(0, 1, 1, 2), **how),
            Case({"samples_per_class": 5, "resample": "epoch"}, **how),
        )

        def __init__(self, given: Any) -> None:
            self.geometry = Geometry(given)
            if given.settings.get("resample") == "epoch":
                made = {client: self.geometry.augmented(client, 1, 0) for client in given.data}
                super().__init__(given.inside(data=made, renewed=self.geometry.augmented))
            else:
                made = {client: self.geometry.augmented(client) for client in given.data}
                super().__init__(given.inside(data=made))

    return as_published(Reference) if inner is FedAvg else Reference


def as_published(usual: Any) -> Any:
    """GGEUR around FedAvg with further cases, in which it follows the authors' public code.

    Every client begins with weights of its own, drawn as PyTorch draws those of a linear layer, and goes on
    with its own model; Adam with rate 1e-3, new each round; a softmax before the cross-entropy; the mean of
    all models, which nobody is sent, predicts.
    """

    # with few samples, most axes have length 0 and may be any; so only three are used
    published = {"as_published": True, "top_k": 3}
    how: dict[str, Any] = {"model": "head", "dtype": torch.float32, "tolerance": 1e-5}

    class Reference(usual):  # type: ignore[misc]
        cases = (
            *usual.cases,
            Case({"samples_per_class": 6, **published}, **how),
            Case({"step1_samples": 4, "step2_samples": 2, **published}, domains=(0, 1, 1, 2), **how),
        )

        def start(self) -> None:
            super().start()
            self.published = self.geometry.published
            self.own = {client: self.drawn(client) for client in self.given.data} if self.published else {}

        def drawn(self, client: int) -> Any:
            network = self.given.network()
            layer: nn.Linear = network.classifier
            bound = layer.in_features**-0.5
            for stream, leaf in enumerate(network.parameters()):
                drawn = self.given.noise(client, 0, 0, "uniform", leaf.shape, stream)
                leaf.data.copy_(bound * (2 * drawn - 1))
            return network

        def client_round(self, client: int, number: int) -> Any:
            if not self.published:
                return super().client_round(client, number)
            model = self.own[client]
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
            for x, y in self.given.batches(client, number):
                optimiser.zero_grad()
                F.cross_entropy(F.softmax(model(x), dim=1), y).backward()
                optimiser.step()
            return copy.deepcopy(model)

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            if not self.published:
                return super().aggregate(trained, number)
            self.model = mean_of(list(trained.values()), [1 / len(trained)] * len(trained))
            return None

        def private_state(self, client: int) -> dict[str, Tensor]:
            return named_state(self.own[client], "model") if self.published else {}

    return Reference


class Geometry:
    """What the server learns from the clients' statistics, and what clients make of it."""

    def __init__(self, given: Any) -> None:
        self.given, self.settings = given, given.settings
        self.several = len(set(given.domains)) > 1
        self.published = given.settings.get("as_published", False)
        self.axes: dict[int, tuple[Tensor, Tensor]] = {}
        for label in range(given.classes):
            pooled = [self.own(client, label) for client in self.asked(label) if self.tells(client, label)]
            if pooled:
                self.axes[label] = self.axes_of(torch.cat(pooled))

    def own(self, client: int, label: int) -> Tensor:
        x, y = self.given.data[client]
        return x[y == label]

    def asked(self, label: int) -> list[int]:
        """The clients whose samples make the covariance: those with most of a class, till they have 80 %."""
        clients = list(self.given.data)
        if not self.published or self.several:
            return clients
        counts = {client: len(self.own(client, label)) for client in clients}
        chosen: list[int] = []
        for client in sorted(clients, key=lambda client: -counts[client]):
            if sum(counts[other] for other in chosen) >= 0.8 * sum(counts.values()):
                break
            chosen.append(client)
        return sorted(chosen)

    def tells(self, client: int, label: int) -> bool:
        least = 1 if self.published else self.settings["min_class_count"]
        return len(self.own(client, label)) >= least

    def axes_of(self, pooled: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(pooled.double().T.cov(correction=0))
        values = values.clamp(min=0).flip(0)[: self.settings["top_k"]]
        vectors = vectors.flip(1)[:, : self.settings["top_k"]]
        ridge = 1e-6 if self.published else self.settings["ridge"]
        return (values + ridge).to(pooled), vectors.to(pooled)

    def domain_means(self, client: int, label: int) -> list[Tensor]:
        """The means of the class in the other domains."""
        domains = self.given.domains
        means = []
        for domain in sorted(set(domains) - {domains[client]}):
            there = [k for k in self.given.data if domains[k] == domain and self.tells(k, label)]
            if there:
                means.append(torch.cat([self.own(k, label) for k in there]).mean(dim=0))
        return means

    def augmented(self, client: int, *when: int) -> tuple[Tensor, Tensor]:
        """The client's own samples, then the new ones class by class, for all rounds or a round and epoch."""
        target = self.settings["step1_samples" if self.several else "samples_per_class"]
        draw = self.given.generator("samples", client, *when)
        x, y = self.given.data[client]
        xs, ys = [x], [y]
        for label in range(self.given.classes):
            own = self.own(client, label)
            missing = max(0, target - len(own)) if len(own) and label in self.axes else 0
            if missing and self.settings.get("samples_per_original"):
                missing = self.settings["samples_per_original"] * len(own)
            centres = [own[i % len(own)] for i in range(missing)]
            if self.several and label in self.axes:
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
