"""The one interface of all methods.

A method is a frozen object that *is* its hyperparameters. Everything that changes during a run is an
argument or a result of its functions: what the server keeps, what a client keeps to itself, and the
messages between them. Only `Reply.content` travels up and only the result of `down` travels down; the
server functions never have a client's private state in scope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict
from torch import Generator, Tensor

from methods.core.batches import Batch, Batches, Samples
from methods.core.optimisers import Optimiser
from methods.core.task import Task
from methods.core.training import Loss
from methods.core.tree import Tree

__all__ = [
    "Batch",
    "Batches",
    "FedAlgorithm",
    "Loss",
    "Message",
    "Reply",
    "Round",
    "Samples",
    "State",
    "Task",
    "Tree",
]

State: TypeAlias = dict[str, Any]
"""Names to trees and tensors. Of one shape for all clients, so that clients can be stacked."""
Message: TypeAlias = dict[str, Any]


class Reply(NamedTuple):
    client: int
    samples: int
    content: Message
    sound: bool = True
    """False if anything in it is NaN or infinite: such a reply is left out of the aggregation."""


class Round(NamedTuple):
    """One exchange between the server and the clients of a round."""

    down: Callable[[State, int], Message]
    """(server, client id) → message"""
    local: Callable[[State, Message, Batches], tuple[Message, State]]
    """(client, message, batches) → (reply, client); what is missing from the new state stays as it was"""
    aggregate: Callable[[State, Sequence[Reply]], State]
    """(server, replies in the order of the clients) → server"""
    one_by_one: bool = False
    """Before round 1: `aggregate` gets one reply at a time, and none at the end, since they are large."""


class FedAlgorithm(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    label: ClassVar[str]
    """The name in tables."""
    version: ClassVar[int] = 1
    """Raised whenever the method computes something else than before: part of a cell's identity."""
    has_global_model: ClassVar[bool] = True
    """Without one, a table shows the mean over the clients' own models."""
    pools_data: ClassVar[bool] = False
    """One client holds the data of all."""
    own_model: ClassVar[Mapping[str, Any] | None] = None
    """The model, where it is not the suite's: for methods that consist in a way to make logits."""

    optimiser: Optimiser | None = None
    """The clients' optimiser, where it is not the suite's."""

    @property
    def client_optimiser(self) -> Optimiser | None:
        return self.optimiser

    def server(self, task: Task) -> State:
        """What the server keeps, at the start."""
        return {"model": task.initial}

    def client(self, task: Task) -> State:
        """What a client keeps to itself, before its first participation."""
        return {}

    def prelude(self, task: Task) -> list[Round]:
        """Exchanges with all clients before round 1, computed one client at a time by every executor."""
        return []

    @property
    def resamples(self) -> bool:
        """Whether `training_samples` gives others in every epoch."""
        return False

    def training_samples(self, task: Task, client: State, own: Samples, draw: Generator) -> Samples:
        """What a client trains on in its rounds: its own samples, unless the method makes more of them."""
        return own

    @abstractmethod
    def round(self, task: Task) -> Round:
        """The exchange that is repeated."""

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        """Class scores; with a client's state those of its own model, where the method has such."""
        return task.logits(server["model"], x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        """The same method with another way to predict from the same states, measured beside it."""
        return {}

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        """Embeddings of samples and, in the same space, one anchor a class; None: it has none."""
        return None

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        """Figures for the record of a round."""
        return {}

    def observe_client(self, task: Task, server: State, client: State) -> Mapping[str, float]:
        """Figures about a client's private state; the record has their mean over the round's clients."""
        return {}

    def check(self, task: Task) -> None:
        """Raise ValueError with one sentence if the method cannot work on this task."""
