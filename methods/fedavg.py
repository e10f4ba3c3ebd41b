"""FedAvg: clients train the server's model, the server averages what comes back.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
Algorithm 1: x ← Σ_k w_k y_k with w_k = n_k / Σ n. Local epochs, batch size and optimiser come from the suite.
"""

from collections.abc import Sequence
from typing import ClassVar

from methods.base import Batches, FedAlgorithm, Loss, Message, Reply, Round, State, Task
from methods.parts.losses import cross_entropy


class FedAvg(FedAlgorithm):
    """Also the base of the methods that only change the clients' objective or the server's step."""

    label: ClassVar[str] = "FedAvg"

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        return lambda y, batch: cross_entropy(task.logits(y, batch.x), batch)

    def round(self, task: Task) -> Round:
        def down(server: State, client_id: int) -> Message:
            return {"model": server["model"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            y = task.train(message["model"], self.objective(task, client, message), batches)
            return {"model": y}, client

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            return {**server, "model": self.average(replies)}

        return Round(down, local, aggregate)
