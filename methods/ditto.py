"""Ditto: FedAvg, and beside it a model of every client's own that is pulled towards the server's.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1 with
FedAvg as the solver of the global problem. Client: y by FedAvg's steps from w, which travels; then as many
steps from its own v on CE + λ/2 ‖v − w‖², where w is what the server sent. v stays with the client.

λ = 1 as in the authors' own runs. Buffers of v are its own.
"""

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, Round, State, Task, Tree
from methods.fedavg import FedAvg


class Ditto(FedAvg):
    label: ClassVar[str] = "Ditto"

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull."""

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, _ = base.local(client, message, batches)
            plain = self.objective(task, client, message)
            w = message["model"].only(task.trainable)

            def loss(v: Tree, batch: Batch) -> Tensor:
                return plain(v, batch) + self.lam / 2 * (v.only(task.trainable) - w).sqnorm()

            return reply, {"model": task.train(client["model"], loss, batches)}

        return base._replace(local=local)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return task.logits(server["model"] if client is None else client["model"], x)
