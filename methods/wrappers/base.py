"""What goes around another method and leaves its rounds as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from pydantic import Field, SerializeAsAny, create_model, model_validator
from torch import Generator, Tensor

from methods.base import (
    Batches,
    Exchange,
    FedAlgorithm,
    Loss,
    Message,
    Prelude,
    Reply,
    Samples,
    SamplesByIndex,
    State,
    Task,
    Tree,
)
from methods.core.optimisers import Optimiser
from methods.core.optional import FoldsReplies, MakesSamples

E = TypeVar("E", bound=Exchange | FoldsReplies)
INHERITED = ("has_global_model", "pools_data", "own_model", "one_round", "observes_clients")
"""Class variables that a wrapped method has from the method inside."""


class Wrapper(FedAlgorithm):
    """Server and clients keep the inner method's state under `inner`, beside the wrapper's own entries.

    A wrapper's `neutral` is its own part: the hyperparameters at which it changes nothing, or why there are
    none. `around` adds the inner method's.
    """

    short_label: ClassVar[str]
    """What stands before the inner method's name in tables."""
    outermost: ClassVar[bool] = False
    """Whether other wrappers are refused around this one, since they would undo what it promises."""

    inner: SerializeAsAny[FedAlgorithm]
    """The method inside, with its own hyperparameters."""

    @model_validator(mode="after")
    def _goes_around_no_outermost_one(self) -> Self:
        if isinstance(self.inner, Wrapper) and self.inner.outermost:
            raise ValueError(
                f"cannot go around {self.inner.label}: {self.inner.short_label} has to be the first wrapper "
                "of a name"
            )
        return self

    @classmethod
    def around(cls, kind: type[FedAlgorithm]) -> type[Self]:
        """The same wrapper with an inner method of this kind, by default with its defaults."""
        bases: tuple[type[Any], ...] = (cls, _WithSamples) if issubclass(kind, MakesSamples) else (cls,)
        name = f"{cls.__name__}{kind.__name__}"
        field = Field(default=kind(), description=cls.model_fields["inner"].description)
        made = create_model(name, __base__=bases, __module__=cls.__module__, inner=(kind, field))
        wrapped = cast("type[Self]", made)
        wrapped.label = f"{cls.short_label}+{kind.label}"
        wrapped.version = 1000 * cls.version + kind.version
        wrapped.neutral = _together(cls.neutral, kind.neutral)
        wrapped.reveals = {**cls.reveals, **{f"inner.{name}": why for name, why in kind.reveals.items()}}
        wrapped.sample_state = cls.sample_state | {f"inner.{name}" for name in kind.sample_state}
        wrapped.stacks_server = cls.stacks_server and kind.stacks_server
        wrapped.stacks_predictions = cls.stacks_predictions and kind.stacks_predictions
        wrapped.reads_seed = cls.reads_seed or kind.reads_seed
        for variable in INHERITED:
            setattr(wrapped, variable, getattr(kind, variable))
        return wrapped

    @property
    def trained(self) -> FedAlgorithm:
        """The method whose rounds are run."""
        return self.inner

    @property
    def client_optimiser(self) -> Optimiser | None:
        return self.optimiser or self.inner.client_optimiser

    def check(self, task: Task) -> None:
        self.trained.check(task)

    def server(self, task: Task) -> State:
        return {"inner": self.trained.server(task)}

    def client(self, task: Task) -> State:
        return outer(self.trained.client(task))

    def prelude(self, task: Task) -> Prelude:
        return [inside(exchange) for exchange in self.trained.prelude(task)]

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return self.trained.down(task, server["inner"], client_id)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        return self.trained.objective(task, inner(client), message)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = self.trained.local(task, inner(client), message, batches)
        return reply, outer(kept)

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return {**server, "inner": self.trained.aggregate(task, server["inner"], replies)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        return self.trained.parameters(task, server["inner"], None if client is None else inner(client))

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return self.trained.predict(task, server["inner"], None if client is None else inner(client), x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        others = self.trained.other_predictions()
        return {name: self.model_copy(update={"inner": method}) for name, method in others.items()}

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        return self.trained.anchored(task, server["inner"], x)

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return self.trained.observe(task, server["inner"], None if client is None else inner(client))


class _WithSamples(Wrapper):
    def training_samples(
        self, task: Task, client: State, own: Samples, draw: Generator
    ) -> Samples | SamplesByIndex:
        assert isinstance(self.trained, MakesSamples)
        return self.trained.training_samples(task, inner(client), own, draw)

    def resamples(self) -> bool:
        assert isinstance(self.trained, MakesSamples)
        return self.trained.resamples()


@dataclass(frozen=True)
class _Inside(Generic[E]):
    """An exchange of the inner method, on its part of the states."""

    exchange: E

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return self.exchange.down(task, server["inner"], client_id)

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = self.exchange.local(task, inner(client), message, batches)
        return reply, outer(kept)


class _AggregatesInside(_Inside[Exchange]):
    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return {**server, "inner": self.exchange.aggregate(task, server["inner"], replies)}


class _FoldsInside(_Inside[FoldsReplies]):
    def fold(self, task: Task, server: State, reply: Reply) -> State:
        return {**server, "inner": self.exchange.fold(task, server["inner"], reply)}

    def finish(self, task: Task, server: State) -> State:
        return {**server, "inner": self.exchange.finish(task, server["inner"])}


def inside(exchange: Exchange | FoldsReplies) -> Exchange | FoldsReplies:
    """The exchange as the wrapper runs it."""
    return _FoldsInside(exchange) if isinstance(exchange, FoldsReplies) else _AggregatesInside(exchange)


def inner(client: State) -> State:
    """The inner method's part of a client's private state."""
    own: State = client.get("inner", {})
    return own


def outer(kept: State) -> State:
    """A private state of the inner method as a part of the wrapper's; nothing where there is none."""
    return {"inner": kept} if kept else {}


def _together(own: Mapping[str, Any] | str, inside: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """Where wrapper and inner method together are FedAvg."""
    if isinstance(own, str):
        return own
    if isinstance(inside, str):
        return inside
    return {**own, "inner": dict(inside)} if inside else own
