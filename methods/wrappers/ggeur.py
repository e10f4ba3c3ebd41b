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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Generator, Tensor

from methods.base import Batches, FedAlgorithm, LateSamples, Message, Prelude, Reply, Samples, State, Task
from methods.core.fields import Role, option
from methods.core.late_rows import Given, LateRows, chosen
from methods.core.optimisers import Optimiser
from methods.fedavg import FedAvg
from methods.shared.geometry import (
    Axes,
    Moments,
    geometry_similarity,
    moments,
    no_moments,
    principal_axes,
    with_more,
)
from methods.shared.preludes import Download
from methods.wrappers._ggeur_published import JITTER, OPTIMISER, CountsUp, NeverSentBack, OwnHeads
from methods.wrappers.base import Wrapper


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
    ) -> Samples | LateSamples:
        if "shared" not in client:
            return own
        several = len(set(self.domain_numbers(task))) > 1
        target = self.step1_samples if several else self.samples_per_class
        labels = torch.nonzero(client["shared"]["known"])[:, 0].tolist()
        added = [self.added(client, own, label, target, draw) for label in labels]
        counts = own.y.new_tensor([len(each) for each in added])
        of_added = own.y.new_tensor(labels).repeat_interleave(counts)
        floats = client["shared"]["axes"]["eigenvectors"].new_empty(0, own.x.shape[1])
        return LateSamples(LateRows([Given(own.x), *added], like=floats), torch.cat([own.y, of_added]))

    def added(self, client: State, own: Samples, label: int, target: int, draw: Generator) -> Around:
        """What a client adds to its samples of a class."""
        members = own.x[own.y == label]
        centres = [Centres(members, self.missing(len(members), target))]
        if "prototypes" in client:
            there = client["prototypes"][client["has_prototype"][:, label], label]
            centres += [Centres(mean[None], self.step2_samples) for mean in there]
        values, vectors = (client["shared"]["axes"][key][label] for key in Axes._fields)
        scale = values.sqrt() if self.noise_scale == "sqrt" else values
        count = sum(each.added for each in centres)
        noise = torch.randn(count, len(values), generator=draw).to(values.device)
        return Around(centres, noise.mul_(scale), vectors)

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


class Centres(NamedTuple):
    """Points that samples are added around, in turn, and how many samples that are."""

    points: Tensor
    added: int

    def of_each(self) -> Tensor:
        """Sample → its point."""
        return torch.arange(self.added, device=self.points.device) % max(1, len(self.points))


class Around:
    """Samples of one class around some centres: X + (ε·√λ)Vᵀ."""

    def __init__(self, centres: Sequence[Centres], noise: Tensor, vectors: Tensor) -> None:
        """`noise`: ε·√λ; `vectors`: V."""
        self._noise, self._vectors = noise, vectors
        self._points = torch.cat([each.points for each in centres])
        starts = accumulate((len(each.points) for each in centres[:-1]), initial=0)
        self._centre = torch.cat(
            [start + each.of_each() for start, each in zip(starts, centres, strict=True)]
        )

    def __len__(self) -> int:
        return len(self._noise)

    @property
    def nbytes(self) -> int:
        return self._noise.nbytes + self._centre.nbytes

    def write(self, rows: Tensor | None, into: Tensor) -> None:
        noise = chosen(self._noise, rows)
        if len(noise) < FEWEST:
            padding = noise.new_zeros(FEWEST - len(noise), noise.shape[1])
            into.copy_(torch.mm(torch.cat([noise, padding]), self._vectors.T)[: len(into)])
        else:
            torch.mm(noise, self._vectors.T, out=into)
        into += self._points.index_select(0, chosen(self._centre, rows))


FEWEST = 16
"""Rows from which on a product is the same, bit for bit, whichever rows are computed together."""


@dataclass(frozen=True)
class StatisticsUp:
    """Clients send the moments of their classes; the server adds them up and finds the principal axes."""

    domain_of: tuple[int, ...]
    """Client → domain."""
    least_count: int
    """Of a class with fewer samples, a client sends nothing."""
    added_variance: float
    """Along every axis."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {"wanted": server["wanted"][client_id]} if "wanted" in server else {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        x, y = (torch.cat(part) for part in zip(*((b.x, b.y) for b in batches.once()), strict=True))
        counts = y.bincount(minlength=task.classes)
        enough = counts >= self.least_count
        withheld = ((counts > 0) & ~enough).sum()
        shown = torch.nonzero(enough & message["wanted"] if message else enough)[:, 0]
        return {"classes": shown, "withheld": withheld, **moments(x, y, shown)._asdict()}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        part = Moments(*(reply.content[key] for key in Moments._fields))
        at, domain = reply.content["classes"], self.domain_of[reply.client]
        if "moments" not in server:
            server = server | self.blank(task, part)
        now = with_more(Moments(**server["moments"]), at, part)
        counts, means = server["domain_counts"].clone(), server["domain_means"].clone()
        share = (part.counts / (counts[domain, at] + part.counts))[:, None]
        means[domain, at] += share * (part.means - means[domain, at])
        counts[domain, at] += part.counts
        return server | {
            "moments": now._asdict(),
            "domain_counts": counts,
            "domain_means": means,
            "withheld": server["withheld"] + reply.content["withheld"],
        }

    def blank(self, task: Task, like: Moments) -> State:
        """Statistics of no samples at all."""
        blank = no_moments(task.classes, like.means.shape[1], like.means.device)
        domains = len(set(self.domain_of))
        return {
            "moments": blank._asdict(),
            "domain_counts": blank.counts.repeat(domains, 1),
            "domain_means": blank.means.repeat(domains, 1, 1),
            "withheld": torch.tensor(0, device=like.means.device),
        }

    def finish(self, task: Task, server: State) -> State:
        """The axes instead of the covariances."""
        if "moments" not in server:
            return server
        found = Moments(**server["moments"])
        axes = principal_axes(found.covariances, self.added_variance, counts=found.counts)
        kept = {key: value for key, value in server.items() if key not in ("moments", "wanted")}
        shared = {"axes": {key: each.float() for key, each in axes._asdict().items()}}
        return kept | {"shared": shared | {"known": found.counts > 0}}


@dataclass(frozen=True)
class GeometryDown(Download):
    """Clients get the axes and, with several domains, the others' class means; the server forgets both."""

    domain_of: tuple[int, ...]
    """Client → domain."""
    step2: bool
    """Whether clients add samples around the means of other domains."""
    top_k: int | None
    """How many of the longest axes are sent; None: all."""
    similarity_from: int | None
    """Samples of a class from which on a client says how similar its geometry is; None: it does not."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        if "shared" not in server:
            return {}
        sent = {"shared": self.cut(server["shared"])}
        others = sorted(set(self.domain_of) - {self.domain_of[client_id]})
        if not (self.step2 and others):
            return sent
        return sent | {
            "prototypes": server["domain_means"][others].float(),
            "has_prototype": server["domain_counts"][others] > 0,
        }

    def cut(self, shared: State) -> State:
        if self.top_k is None:
            return shared
        axes = {key: each[..., : self.top_k].contiguous() for key, each in shared["axes"].items()}
        return shared | {"axes": axes}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        if self.similarity_from is None or "shared" not in message:
            return reply, kept
        return reply | {"similarity": similarity_to(message["shared"], batches, self.similarity_from)}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        kept = {key: server[key] for key in ("inner", "withheld") if key in server}
        told = [reply.content["similarity"] for reply in replies if "similarity" in reply.content]
        return kept | ({"similarity": torch.stack(told).mean()} if told else {})


def similarity_to(shared: Mapping[str, Any], batches: Batches, least: int) -> Tensor:
    """The mean similarity of a client's classes to the global ones, over those with `least` samples or more.

    A class of one sample has no shape: its similarity is 0.
    """
    x, y = (torch.cat(part) for part in zip(*((b.x, b.y) for b in batches.once()), strict=True))
    shown = torch.nonzero(y.bincount(minlength=len(shared["known"])) >= least)[:, 0]
    if not len(shown):
        return x.new_zeros(())
    own = moments(x, y, shown)
    mine = principal_axes(own.covariances, counts=own.counts)
    ours = Axes(*(shared["axes"][key][shown].double() for key in Axes._fields))
    axes = min(mine.eigenvalues.shape[1], ours.eigenvalues.shape[1])
    cut = [Axes(each.eigenvalues[:, :axes], each.eigenvectors[:, :, :axes]) for each in (mine, ours)]
    return geometry_similarity(*cut).mean().float()
