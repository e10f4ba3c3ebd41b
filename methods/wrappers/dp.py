"""DP: any method whose server averages models, with clipped updates and noise on their mean (DP-FedAvg).

McMahan et al., "Learning Differentially Private Recurrent Language Models", ICLR 2018, Algorithm 1 with flat
clipping and the estimator of fixed denominator. With x the model that was sent and y_k what client k returns:

    Δ_k = y_k − x over all floating-point numbers,   Δ̃_k = Δ_k · min(1, S / ‖Δ_k‖),
    Δ̄ = (1/m) Σ_k Δ̃_k + N(0, (zS/m)²) per number,   y = x + Δ̄.

m is the number of clients planned per round, whoever's reply is missing; all clients weigh the same. y goes
to the inner server as the only reply: FedAvg takes it as the new model, FedAdam as the end of its step.

What is protected is a client with all of its data, against anyone who sees the server's models of all rounds.
The server is trusted: clipping and noise are its work, so that a client that does not clip cannot do harm.
ε is given at `delta` after every round. By default nobody is assumed not to know who took part: T rounds are
one Gaussian mechanism of multiplier z/√T, which is exact for clients that take part in every round and too
large for others; neighbours differ in one client whose updates are replaced by zero. With
`amplification: without_replacement`, ε is the Rényi bound for samples of fixed size, which is how rounds are
drawn here, if the draw stays secret; with `poisson` it is the paper's, as if clients were drawn one by one.

A method that sends more than a model, or anything before round 1, is refused, and so is batch norm, whose
statistics would be noised. Accuracies and figures in the records are those of an experiment, which ε does not
cover. The noise comes from the seed so that runs can be repeated: not for the protection of real people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from pydantic import Field, model_validator

from methods.base import Reply, State, Task, Tree
from methods.shared.accounting import Amplification, epsilon, require_accountant
from methods.wrappers._averages import in_place_of, require_average, sent_model
from methods.wrappers.base import Wrapper


class DP(Wrapper):
    short_label = "DP"
    neutral = "clips updates and weighs all clients alike at every setting"
    outermost = True
    stacks_server = False

    clip: float = Field(default=1.0, gt=0)
    """S, the largest length of a client's update; the paper tunes it, 15 for its language model."""
    noise_multiplier: float = Field(default=1.0, ge=0)
    """z, the standard deviation of the noise on the sum of updates over S; 1 in the paper's main runs."""
    delta: float = Field(default=1e-5, gt=0, lt=1)
    """δ, the probability with which ε may not hold; 1e-5, well below 1 / clients for thousands of them."""
    amplification: Amplification = "none"
    """Whether ε takes credit for the sampling of clients: no (`none`, which always holds), for samples of
    fixed size (`without_replacement`), or as if they were drawn one by one (`poisson`, as in the paper)."""

    @model_validator(mode="after")
    def _replaces_an_average(self) -> Self:
        require_average(self.inner, "add noise to")
        return self

    def check(self, task: Task) -> None:
        super().check(task)
        require_accountant()
        if task.has_batch_norm:
            raise ValueError("would add noise to the statistics of batch norm: choose a model without it")
        if list(self.trained.prelude(task)):
            raise ValueError(
                f"adds noise to models alone, but {self.inner.label} also sends something before round 1: "
                "choose another method, say dp+fedavg"
            )

    def server(self, task: Task) -> State:
        planned = task.per_round or task.clients
        return super().server(task) | {"planned": torch.tensor(planned), "releases": torch.tensor(0)}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        if extra := {key for reply in replies for key in reply.content} - {"model"}:
            raise ValueError(f"{self.inner.label} sends {', '.join(sorted(extra))}, which has no noise")
        planned, number = int(server["planned"]), int(server["releases"])
        x = sent_model(self.trained, task, server["inner"], replies[0])
        mean = x.zeros()
        for reply in replies:
            mean = mean + self.clipped(reply.content["model"] - x) / planned
        draw = task.generator("privacy noise", number)
        sigma = self.noise_multiplier * self.clip / planned
        noise = x.map(lambda leaf: sigma * torch.randn(leaf.shape, generator=draw).to(leaf))
        noised = [in_place_of(replies, x + mean + noise)]
        inner = self.trained.aggregate(task, server["inner"], noised)
        return {**server, "inner": inner, "releases": server["releases"] + 1}

    def clipped(self, update: Tree) -> Tree:
        """The update, shortened to S if it is longer."""
        return update * (self.clip / update.norm().clamp(min=self.clip))

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        figures = dict(super().observe(task, server, client))
        releases = int(server["releases"])
        if client is None and releases and self.noise_multiplier:
            figures["epsilon"] = epsilon(
                self.noise_multiplier,
                releases,
                self.delta,
                self.amplification,
                int(server["planned"]),
                task.clients,
            )
        return figures
