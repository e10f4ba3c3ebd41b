"""FedAvg: clients train the server's model, the server averages what comes back.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
Algorithm 1: x ← Σ_k w_k y_k with w_k = n_k / Σ n. Local epochs, batch size and optimiser come from the suite.
With `alignment` the weights come from the agreement of the updates instead (FedSDG's server).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import Field, model_validator

from methods.base import Batches, Loss, Message, Reply, Round, State, Task
from methods.shared.alignment import Alignment, observed
from methods.shared.averaging import Averaging
from methods.shared.losses import cross_entropy


class FedAvg(Averaging):
    """Also the base of the methods that only change the clients' objective or the server's step."""

    label: ClassVar[str] = "FedAvg"

    alignment: Alignment | None = Field(default=None, exclude_if=lambda value: value is None)
    """Weights by agreement instead of by samples; left out of the cell's identity where it is off."""

    @model_validator(mode="after")
    def _aligns_its_own_average(self) -> "FedAvg":
        if self.alignment is not None and type(self).round is not FedAvg.round:
            raise ValueError(f"{self.label} aggregates in a way of its own; leave out 'alignment'")
        return self

    def check(self, task: Task) -> None:
        if self.alignment is not None:
            self.alignment.check(task)

    def server(self, task: Task) -> State:
        figures = {} if self.alignment is None else {"alignment": self.alignment.start()}
        return super().server(task) | figures

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        return lambda y, batch: cross_entropy(task.logits(y, batch.x), batch)

    def round(self, task: Task) -> Round:
        def down(server: State, client_id: int) -> Message:
            return {"model": server["model"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            y = task.train(message["model"], self.objective(task, client, message), batches)
            return {"model": y}, {}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            if self.alignment is not None:
                return self.alignment.aggregate(task, server, replies)
            return {**server, "model": self.average(replies)}

        return Round(down, local, aggregate)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return observed(server["alignment"]) if self.alignment is not None else {}
