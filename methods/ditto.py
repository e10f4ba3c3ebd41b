"""Ditto: FedAvg and, beside it, a model of each client's own that is pulled towards the server's.

Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021, Algorithm 1 with
FedAvg as the solver of the global problem. Client: y by FedAvg's steps from w, which travels; then as many
steps from its own v on CE + λ/2 ‖v − w‖², where w is what the server sent. v stays with the client, and so
do the buffers of its model. The server's model is FedAvg's at every λ.
"""

from pydantic import Field

from methods.base import Batches, Message, State, Task
from methods.fedavg import FedAvg
from methods.fedprox import FedProx


class Ditto(FedAvg):
    label = "Ditto"

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull on the client's own model; 1 in the authors' runs."""

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        pulled = FedProx.model_construct(mu=self.lam).objective(task, client, message)
        return reply, {"model": task.train(client["model"], pulled, batches)}
