"""FedAvg: clients train the server's model, the server averages what comes back.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
Algorithm 1: x ← Σ_k w_k y_k with w_k = n_k / Σ n. Local epochs, batch size and optimiser come from the suite.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from methods.base import Batches, FedAlgorithm, Loss, Message, Reply, Round, State, Task, Tree
from methods.parts.losses import cross_entropy
from methods.parts.tree import weighted_sum


class FedAvg(FedAlgorithm):
    """Also the base of the methods that only change the clients' objective or the server's step."""

    label: ClassVar[str] = "FedAvg"

    weighting: Literal["samples", "uniform"] = "samples"
    """How much a client counts in an average: by its number of samples, or all the same."""

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

    def weights(self, replies: Sequence[Reply]) -> list[float]:
        """The clients' shares in an average; they sum to 1."""
        parts = [reply.samples if self.weighting == "samples" else 1 for reply in replies]
        return [part / sum(parts) for part in parts]

    def average(self, replies: Sequence[Reply], key: str = "model") -> Tree:
        return weighted_sum([reply.content[key] for reply in replies], self.weights(replies))
