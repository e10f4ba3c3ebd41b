"""GGEUR: clients add samples along the principal axes of all clients' data, and any method trains on them.

Ma et al., "Geometric Knowledge-Guided Localized Global Distribution Alignment for Federated Learning", CVPR
2025. On embeddings of a frozen encoder. Before round 1, up: for each class a client has, n, μ and Σ (1/n).
Server: μ_i = Σ_k n_k μ_k / N and Σ_i = (1/N)(Σ_k n_k Σ_k + Σ_k n_k (μ_k − μ_i)(μ_k − μ_i)ᵀ), which is the
covariance of the pooled samples, and its eigenvalues λ and eigenvectors V. Down: these, and with several
domains the others' class means. Clients then add X + (ε·√λ)Vᵀ with ε ~ N(0, I): samples of covariance Σ_i.

One domain: every class that a client has is filled up to `samples_per_class` around its own samples. Several:
step 1 fills up to `step1_samples`; step 2 adds `step2_samples` around each other domain's mean, also of
classes that the client does not have. A client's own samples are always kept.

Deviations: the paper prints ε·λ, which gives the covariance Σ² (`noise_scale: linear`). A class of one sample
would upload that sample as its mean, so `min_class_count` withholds it. A client's weight in averages counts
what it trains on, added samples included. The statistics are sent once, before round 1: those of a frozen
encoder are the same in every round.

`as_published` follows the public code where it leaves the paper. Every client begins with weights of its own
and never gets the averaged model; Adam with rate 1e-3, new each round; clients count alike in averages; the
loss takes a softmax of a softmax. With one domain, the covariance of a class is that of its largest holders
that together have 80 % of it. No class is withheld, and 1e-6 is added to every eigenvalue. All rounds are
tested; a table marks such a row and shows its best round on test. What a suite has to add: the encoder
open_clip ViT-B-32 without scaling, and `samples_per_class` 5000 on CIFAR-10 and 500 on CIFAR-100 and Tiny
ImageNet (the paper says 2000). For Office-Home-LDS the public code makes 50 samples per class and trains
GGEUR for 1 local epoch where its rivals have 10. One difference is left: where the missing samples are no
multiple of a client's own, the public code adds none around its last ones, and this one fewer around some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Generator

from methods.base import FedAlgorithm, Prelude, Role, Samples, SamplesByIndex, State, Task, option
from methods.core.optimisers import Optimiser
from methods.fedavg import FedAvg
from methods.shared.geometry import Axes
from methods.wrappers.base import Wrapper
from methods.wrappers.ggeur.as_published import JITTER, OPTIMISER, CountsUp, NeverSentBack, OwnHeads
from methods.wrappers.ggeur.exchanges import GeometryDown, StatisticsUp
from methods.wrappers.ggeur.lazy_samples import AddedSamples, LazySamples


class GGEUR(Wrapper):
    short_label = "GGEUR"
    neutral = {"samples_per_class": 1}
    version = 2
    sample_state = frozenset({"shared", "prototypes", "has_prototype"})

    domains: Annotated[Literal["auto", "one", "several"], Role.SAMPLES] = "auto"
    """Whether clients have domains; `auto`: several where every client belongs to one of several domains."""
    samples_per_class: Annotated[int, Role.SAMPLES] = Field(default=2000, ge=1)
    """With one domain: samples per class after filling up; 2000 as in the paper, not in its code."""
    samples_per_original: Annotated[int | None, Role.SAMPLES] = option(None, ge=1)
    """Samples added around each of a client's own; None: as many as `samples_per_class` or `step1_samples`
    ask for."""
    step1_samples: Annotated[int, Role.SAMPLES] = Field(default=500, ge=0)
    """With several domains: samples per class after filling up around its own; 500 as in the paper."""
    step2_samples: Annotated[int, Role.SAMPLES] = Field(default=500, ge=0)
    """With several domains: samples per class around each other domain's mean; 500 as in the paper."""
    step2: Annotated[bool, Role.SAMPLES] = True
    """Whether the second step is taken; off in the paper's ablation."""
    noise_scale: Annotated[Literal["sqrt", "linear"], Role.SAMPLES] = "sqrt"
    """The noise along an axis: ε·√λ, so that samples have the covariance Σ, or ε·λ as the paper prints it."""
    top_k: Annotated[int | None, Role.SAMPLES] = Field(default=None, ge=1)
    """Use only this many of the longest axes; None: all, as in the paper."""
    ridge: Annotated[float, Role.SAMPLES] = Field(default=0.0, ge=0)
    """Added to every eigenvalue; 0 as in the paper."""
    resample: Annotated[Literal["once", "epoch"], Role.SAMPLES] = "once"
    """Whether added samples are drawn once (as in the public code) or again for every epoch."""
    min_class_count: Annotated[int, Role.SAMPLES] = Field(default=2, ge=1)
    """Classes of which a client has fewer samples are not uploaded; 2, so that no mean is a single sample."""
    as_published: bool = False
    """Follow the public code where it leaves the paper; the docstring of the file has the list."""
    report_similarity: bool = option(False)
    """Record how similar the clients' geometries are to the global one: the mean over their classes."""

    @property
    def trained(self) -> FedAlgorithm:
        return NeverSentBack() if self.as_published else self.inner

    @property
    def client_optimiser(self) -> Optimiser | None:
        own = super().client_optimiser
        return OPTIMISER if own is None and self.as_published else own

    @property
    def least_count(self) -> int:
        """Of a class with fewer samples, a client sends nothing."""
        return 1 if self.as_published else self.min_class_count

    @property
    def added_variance(self) -> float:
        """Along every axis."""
        return max(self.ridge, JITTER) if self.as_published else self.ridge

    def check(self, task: Task) -> None:
        super().check(task)
        if task.model.reads_tokens or (task.input_shape is not None and len(task.input_shape) != 1):
            raise ValueError("works on embeddings, not on images or texts: give an encoder with --encoder")
        if self.domains == "several" and len(set(task.domains)) < 2:
            raise ValueError("has domains = several, but the clients do not belong to several domains")
        if self.as_published and type(self.inner) is not FedAvg:
            raise ValueError("has as_published, which is defined for ggeur+fedavg alone")

    def prelude(self, task: Task) -> Prelude:
        one_domain = len(set(self.domain_numbers(task))) == 1
        before = [CountsUp()] if self.as_published and one_domain else []
        after = [OwnHeads()] if self.as_published else []
        domain_of, least = self.domain_numbers(task), self.least_count
        similarity = least if self.report_similarity else None
        own: Prelude = [
            StatisticsUp(domain_of, least, self.added_variance),
            GeometryDown(domain_of, self.step2, self.top_k, similarity),
        ]
        return [*before, *own, *after, *super().prelude(task)]

    def resamples(self) -> bool:
        return self.resample == "epoch"

    def training_samples(
        self, task: Task, client: State, own: Samples, draw: Generator
    ) -> Samples | SamplesByIndex:
        if "shared" not in client:
            return own
        several = len(set(self.domain_numbers(task))) > 1
        target = self.step1_samples if several else self.samples_per_class
        labels = torch.nonzero(client["shared"]["known"])[:, 0].tolist()
        return LazySamples(own, [self.added(client, own, label, target, draw) for label in labels])

    def added(self, client: State, own: Samples, label: int, target: int, draw: Generator) -> AddedSamples:
        """What a client adds to its samples of a class: around its own in turn, then around each mean."""
        centres = own.x[own.y == label]
        held = len(centres)
        centre_of = torch.arange(self.missing(held, target), device=own.x.device) % max(1, held)
        if "prototypes" in client:
            means = client["prototypes"][client["has_prototype"][:, label], label]
            centres = torch.cat([centres, means])
            of_means = torch.arange(held, len(centres), device=own.x.device)
            centre_of = torch.cat([centre_of, of_means.repeat_interleave(self.step2_samples)])
        values, vectors = (client["shared"]["axes"][key][label] for key in Axes._fields)
        scale = values.sqrt() if self.noise_scale == "sqrt" else values
        noise = torch.randn(len(centre_of), len(values), generator=draw).to(values.device)
        return AddedSamples(label, centres, centre_of, noise.mul_(scale), vectors)

    def missing(self, held: int, target: int) -> int:
        """How many samples to add around the `held` ones of a class."""
        if self.samples_per_original is not None:
            return self.samples_per_original * held
        return max(0, target - held) if held else 0

    def domain_numbers(self, task: Task) -> tuple[int, ...]:
        """Client → domain, counted without gaps; all 0 where domains do not matter."""
        if self.domains == "one" or not task.domains:
            return (0,) * task.clients
        numbers = sorted(set(task.domains))
        return tuple(numbers.index(domain) for domain in task.domains)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        names = {"withheld": "withheld_classes", "similarity": "geometry_similarity"}
        own = {name: float(server[key]) for key, name in names.items() if key in server}
        return {**super().observe(task, server, client), **(own if client is None else {})}
