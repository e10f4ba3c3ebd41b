"""What goes around another method and leaves its rounds as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from pydantic import SerializeAsAny, create_model
from torch import Tensor

from methods.base import Batches, FedAlgorithm, Message, Reply, Round, State, Task
from methods.core.optimisers import Optimiser


class Wrapper(FedAlgorithm):
    """Server and clients keep the inner method's state under `inner`, beside the wrapper's own."""

    short_label: ClassVar[str]
    """What stands before the inner method's name in tables."""

    inner: SerializeAsAny[FedAlgorithm]

    @classmethod
    def around(cls, kind: type[FedAlgorithm]) -> type[Self]:
        """The same wrapper with an inner method of this kind, by default with its defaults."""
        wrapped: type[Self] = create_model(
            f"{cls.__name__}{kind.__name__}", __base__=cls, __module__=cls.__module__, inner=(kind, kind())
        )
        wrapped.label = f"{cls.short_label}+{kind.label}"
        wrapped.version = 1000 * cls.version + kind.version
        wrapped.has_global_model = kind.has_global_model
        wrapped.pools_data = kind.pools_data
        wrapped.own_model = kind.own_model
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
        state = self.trained.client(task)
        return {"inner": state} if state else {}

    def prelude(self, task: Task) -> list[Round]:
        return [_inside(exchange) for exchange in self.trained.prelude(task)]

    def round(self, task: Task) -> Round:
        return _inside(self.trained.round(task))

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        own = None if client is None else client.get("inner", {})
        return self.trained.predict(task, server["inner"], own, x)

    def other_predictions(self) -> Mapping[str, FedAlgorithm]:
        others = self.trained.other_predictions()
        return {name: self.model_copy(update={"inner": method}) for name, method in others.items()}

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        return self.trained.anchored(task, server["inner"], x)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return self.trained.observe(task, server["inner"])


def _inside(exchange: Round) -> Round:
    """The inner method's exchange, on its part of the states."""

    def down(server: State, client_id: int) -> Message:
        return exchange.down(server["inner"], client_id)

    def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, state = exchange.local(client.get("inner", {}), message, batches)
        return reply, {"inner": state} if state else {}

    def aggregate(server: State, replies: Sequence[Reply]) -> State:
        return {**server, "inner": exchange.aggregate(server["inner"], replies)}

    return Round(down, local, aggregate, exchange.one_by_one)
