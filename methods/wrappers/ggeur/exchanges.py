"""What clients and server of GGEUR send each other before round 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from methods.base import Batches, Message, Reply, State, Task
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
