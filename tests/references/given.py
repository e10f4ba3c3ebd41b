"""What a reference is told: data, initial weights, orders of batches, clients per round, random draws."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Given:
    """The facts of one run, as plain data; rounds are counted from 1, as in the papers."""

    settings: Mapping[str, Any]
    """The method's hyperparameters."""
    initial: nn.Module
    """The network with its initial weights, in three parts: encoder, projector, classifier."""
    data: Mapping[int, tuple[Tensor, Tensor]]
    """Client → its samples and labels."""
    validation: Mapping[int, tuple[Tensor, Tensor]]
    """Client → samples held out from its training data."""
    classes: int
    rounds: Sequence[Sequence[int]]
    """The clients that take part, round by round."""
    optimiser_settings: Mapping[str, Any]
    batch_size: int
    orders: Callable[[int, int, int], list[Tensor]] = field(repr=False)
    """Client, round, number of samples → the order in which each epoch visits the samples."""
    noise: Callable[..., Tensor] = field(repr=False)
    """Client, round, step, kind ("normal" or "uniform"), shape, stream → the draws of one training step."""
    generator: Callable[..., torch.Generator] = field(repr=False)
    """Purpose and keys → the random stream of that purpose."""
    common_normal: Callable[..., Tensor] = field(repr=False)
    """Purpose and shape → normal numbers that all parties can draw from the seed."""
    server_start: Mapping[str, Tensor]
    """What else the server starts from, such as the random weights of a generator: name → tensor."""
    client_start: Mapping[str, Tensor]
    """The same for every client."""
    domains: Sequence[int] = ()
    """The domain of every client, where clients have domains."""
    renewed: Callable[[int, int, int], tuple[Tensor, Tensor]] | None = field(default=None, repr=False)
    """Client, round, epoch → what it trains on then, where that is not the same in all epochs."""

    @property
    def clients(self) -> int:
        return len(self.data)

    def inside(self, **other: Any) -> Given:
        """The facts for the method inside a wrapper, with some of them replaced."""
        inner = {key.removeprefix("inner."): leaf for key, leaf in self.server_start.items()}
        return replace(self, settings=self.settings["inner"], server_start=inner, **other)

    def network(self) -> Any:
        """A copy of the network with its initial weights."""
        return copy.deepcopy(self.initial)

    def size(self, client: int) -> int:
        return len(self.data[client][1])

    def batches(self, client: int, number: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of all epochs of a client's round."""
        x, y = self.data[client]
        for epoch, order in enumerate(self.orders(client, number, len(y))):
            if self.renewed is not None:
                x, y = self.renewed(client, number, epoch)
            for chosen in order.split(self.batch_size):
                yield x[chosen], y[chosen]

    def optimiser(self, parameters: Any, **other: Any) -> torch.optim.Optimizer:
        """PyTorch's own optimiser with the clients' settings, or with others for these parameters."""
        settings = {**self.optimiser_settings, **other}
        decay = settings["weight_decay"]
        if settings["name"] == "sgd":
            return torch.optim.SGD(
                parameters, settings["lr"], momentum=settings["momentum"], weight_decay=decay
            )
        return torch.optim.Adam(
            parameters, settings["lr"], betas=settings["betas"], eps=settings["epsilon"], weight_decay=decay
        )

    def step(self, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        """One step on the loss, with the whole gradient clipped where the settings say so."""
        optimiser.zero_grad()
        loss.backward()
        if self.optimiser_settings["clip_norm"] is not None:
            leaves = [leaf for group in optimiser.param_groups for leaf in group["params"]]
            nn.utils.clip_grad_norm_(leaves, self.optimiser_settings["clip_norm"])
        optimiser.step()
