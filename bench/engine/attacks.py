"""Attackers: which clients they are, and what they do to their replies and labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from bench.config.cell import Attackers
from methods.base import Message, Reply, Task
from methods.core.batches import Samples
from methods.core.random import generator
from methods.core.tree import Tree


def _sign_flip(sent: Tensor, received: Tensor | None, scale: float, draw: Generator) -> Tensor:
    return -scale * sent if received is None else received - scale * (sent - received)


def _noise(sent: Tensor, received: Tensor | None, scale: float, draw: Generator) -> Tensor:
    return sent + scale * torch.randn(sent.shape, generator=draw).to(sent)


FORGERIES = {"sign_flip": _sign_flip, "noise": _noise}
"""Attacks on replies → what is sent instead, given what should be, what the server sent under the same name,
and the scale; `label_flip` is an attack on data."""


@dataclass(frozen=True)
class Attack:
    """The attackers of a cell. The server's side forges their replies, the same with every executor."""

    kind: str
    scale: float
    clients: frozenset[int]

    @classmethod
    def drawn(cls, attackers: Attackers, clients: int, seed: int) -> Attack | None:
        """Attackers chosen by the seed; None where one client holds all data, which is nobody's enemy."""
        if clients == 1:
            return None
        order = torch.randperm(clients, generator=generator(seed, "attackers"))
        count = max(1, round(attackers.share * clients))
        return cls(attackers.kind, attackers.scale, frozenset(order[:count].tolist()))

    def among(self, clients: Collection[int]) -> int:
        """How many of these clients are attackers."""
        return len(self.clients.intersection(clients))

    def flips_labels_of(self, client: int) -> bool:
        return self.kind == "label_flip" and client in self.clients

    def on(
        self, task: Task, number: int, messages: Mapping[int, Message], replies: Sequence[Reply]
    ) -> list[Reply]:
        """The replies of a round as they reach the server."""
        forgery = FORGERIES.get(self.kind)
        if forgery is None:
            return list(replies)

        def forged(reply: Reply) -> Reply:
            draw = task.generator("attack", reply.client, number)
            message = messages[reply.client]
            return reply._replace(content=_changed(reply.content, message, forgery, self.scale, draw))

        return [forged(reply) if reply.client in self.clients else reply for reply in replies]


def flipped(samples: Samples, classes: int) -> Samples:
    """The same samples with the label C − 1 − y instead of y."""
    return samples._replace(y=classes - 1 - samples.y)


def _changed(sent: Any, received: Any, forgery: Callable[..., Tensor], scale: float, draw: Generator) -> Any:
    """The nest with all its floating-point tensors forged, in order."""
    if isinstance(sent, Tensor):
        known = received if isinstance(received, Tensor) and received.shape == sent.shape else None
        return forgery(sent, known, scale, draw) if sent.is_floating_point() else sent
    inside = received if isinstance(received, dict | Tree) else {}
    return type(sent)(
        {key: _changed(item, inside.get(key), forgery, scale, draw) for key, item in sent.items()}
    )
