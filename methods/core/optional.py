"""Methods that make samples, and exchanges that take in replies one by one.

The engine looks for both with `isinstance`: a method or an exchange offers one by having its functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from torch import Generator

from methods.core.batches import Batches, Samples
from methods.core.exchange import Exchange, Message, Reply, State
from methods.core.samples_by_index import SamplesByIndex

if TYPE_CHECKING:
    from methods.core.task import Task


@runtime_checkable
class MakesSamples(Protocol):
    """A method whose clients train on other samples than their own.

    Hyperparameters that samples depend on are declared with `Role.SAMPLES`, or `Role.BRANCH` where rounds
    depend on them, too: cells that differ only in other floats share their samples.
    """

    def training_samples(
        self, task: Task, client: State, own: Samples, draw: Generator
    ) -> Samples | SamplesByIndex:
        """What a client trains on, given its private state, its own samples and a source of randomness."""

    def resamples(self) -> bool:
        """Whether every epoch gets new samples, instead of the same ones in all rounds."""


@runtime_checkable
class FoldsReplies(Protocol):
    """An exchange before round 1 whose replies are so large that the server takes in one at a time."""

    def down(self, task: Task, server: State, client_id: int) -> Message:
        """What the server sends to a client."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        """A client's work: its reply, and the entries of its private state that changed."""

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        """The server's state after one more reply."""

    def finish(self, task: Task, server: State) -> State:
        """The server's state after the last reply."""


Prelude: TypeAlias = Sequence[Exchange | FoldsReplies]
"""Exchanges with all clients before round 1.

Two that are equal (`==`) compute the same from the same data, model and seed, whatever the optimiser, and
cells of a sweep share what comes of them. So an exchange is best a frozen dataclass of the numbers that it
uses; other classes are equal to themselves alone, and are computed for every cell."""
