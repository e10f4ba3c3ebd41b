"""Local training only: nothing is sent. The lower bound of every table.

Every client trains its own model on its own data with the same number of steps that it would take in a
federation. A table shows, for each domain, the mean accuracy over all clients' models.
"""

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from methods.base import Batches, FedAlgorithm, Message, Reply, Round, State, Task
from methods.shared.losses import cross_entropy


class Local(FedAlgorithm):
    label: ClassVar[str] = "Local"
    has_global_model: ClassVar[bool] = False

    def server(self, task: Task) -> State:
        return {}

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def round(self, task: Task) -> Round:
        def down(server: State, client_id: int) -> Message:
            return {}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            y = task.train(
                client["model"], lambda y, batch: cross_entropy(task.logits(y, batch.x), batch), batches
            )
            return {}, {"model": y}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            return server

        return Round(down, local, aggregate)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        assert client is not None, "local training has no global model"
        return task.logits(client["model"], x)
