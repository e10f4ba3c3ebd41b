"""Aligned: any method whose server averages models, with FedSDG's server instead of the average.

A client's update counts the more, the better it agrees with the mean of all updates; the formulae are in
`methods/shared/alignment.py`. Everything else is the inner method's: what travels, the clients' work,
prediction. A method whose server does more than FedAvg's average is refused, since its rule and this one
exclude each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import model_validator

from methods.base import Reply, State, Task
from methods.fedavg import FedAvg
from methods.shared.alignment import Alignment, observed
from methods.wrappers.base import Wrapper


class Aligned(Alignment, Wrapper):
    short_label = "Aligned"
    neutral = "weights clients by the agreement of their updates at every setting"
    stacks_server = False

    @model_validator(mode="after")
    def _replaces_an_average(self) -> Self:
        if type(self.inner).aggregate is not FedAvg.aggregate:
            raise ValueError(
                f"cannot align {self.inner.label}, which aggregates in its own way; choose a method whose "
                "server takes FedAvg's average, as in aligned+fedprox"
            )
        return self

    def check(self, task: Task) -> None:
        super().check(task)
        self.check_alignment(task)

    def server(self, task: Task) -> State:
        return super().server(task) | {"alignment": self.start()}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        aligned = self.align(task, server["inner"] | {"alignment": server["alignment"]}, replies)
        return {"alignment": aligned.pop("alignment"), "inner": aligned}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        own = observed(server["alignment"]) if client is None else {}
        return {**own, **super().observe(task, server, client)}
