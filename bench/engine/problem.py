"""The problem that server and hosts work on: everything about a cell that does not change while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bench.config.schedules import Schedule
from bench.engine.attacks import Attack
from bench.engine.preparation import Recipe
from methods.base import Exchange, FedAlgorithm, Task
from methods.core.batches import Samples
from methods.core.optional import FoldsReplies
from methods.core.random import derive, generator


@dataclass(frozen=True)
class Problem:
    """Everything about a cell that does not change while it runs."""

    task: Task
    method: FedAlgorithm
    epochs: int
    batch_size: int
    steps: int | None = field(default=None, kw_only=True)
    """Local steps per round; None: use `epochs`."""
    schedule: Schedule | None = field(default=None, kw_only=True)
    """How learning rates change over the rounds; None: not at all."""
    rounds: int = field(default=1, kw_only=True)
    """Rounds of the whole run, which a schedule depends on."""
    recipe: Recipe = field(default=Recipe(), kw_only=True)
    """Augmentation and label smoothing."""
    attack: Attack | None = field(default=None, kw_only=True)
    """Which clients send forged replies; None: all are honest."""
    train: Mapping[int, Samples]
    """Client → its training samples."""
    validation: Mapping[int, Samples]
    """Client → samples held out from its training data; empty where a cell holds out none."""
    test: Mapping[str, Samples]
    """Domain → its test set, or the part of it that is unseen; empty while hyperparameters are chosen."""
    own_test: Mapping[int, Mapping[str, Tensor]]
    """Client → domain → positions in that domain's test set which are like the client's own data; empty
    without test sets, and where models are tested on what no client has."""

    def exchanges(self) -> list[Exchange | FoldsReplies]:
        """The exchanges before the first round, then the method itself, which is repeated."""
        return [*self.method.prelude(self.task), self.method]

    def task_in(self, number: int) -> Task:
        """The task with the learning rates of a round; that of round 0 is the task itself."""
        if self.schedule is None or number == 0:
            return self.task
        factor = self.schedule.at(number, self.rounds)
        return replace(self.task, optimiser=self.task.optimiser.scaled(factor))

    def orders(self, client: int, number: int, count: int) -> list[Tensor]:
        """Per epoch of a round, the order in which the client visits its `count` samples."""
        draw = generator(self.task.seed, "batches", client, number)
        if self.steps is None:
            return [torch.randperm(count, generator=draw) for _ in range(self.epochs)]
        per_epoch = -(-count // self.batch_size)
        epochs = [torch.randperm(count, generator=draw) for _ in range(-(-self.steps // per_epoch))]
        in_last = self.steps - (len(epochs) - 1) * per_epoch
        return [*epochs[:-1], epochs[-1][: in_last * self.batch_size]]

    def steps_of(self, count: int) -> int:
        """How many steps a client with so many samples takes in a round."""
        return self.epochs * -(-count // self.batch_size) if self.steps is None else self.steps

    def key(self, client: int, number: int) -> int:
        """The key of the random numbers in a client's round; later steps count up from it."""
        return derive(self.task.seed, "steps", client, number) >> 1
