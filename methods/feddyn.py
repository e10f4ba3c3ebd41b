"""FedDyn: every client's objective is bent round by round until all of them agree with the mean's minimum.

Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, Algorithm 1. Client:
minimise f_k(y) − ⟨g_k, y⟩ + α/2 ‖y − x‖², then g_k ← g_k − α(y − x). Server:
h ← h − α (1/K) Σ (y − x) over the round's clients, x ← mean(y) − h/α. So h is always the mean of all g_k.
Buffers are averaged.

α = 0.1 is in the paper's grid {0.1, 0.01, 0.001}; there is no α that gives FedAvg. The mean is uniform as
printed, since only then the fixed point minimises the mean loss.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, Round, State, Task, Tree
from methods.fedavg import FedAvg


class FedDyn(FedAvg):
    label: ClassVar[str] = "FedDyn"

    weighting: Literal["uniform"] = "uniform"
    alpha: float = Field(default=0.1, gt=0)
    """α."""

    def server(self, task: Task) -> State:
        return super().server(task) | {"h": task.initial.only(task.trainable).zeros()}

    def client(self, task: Task) -> State:
        return {"g": task.initial.only(task.trainable).zeros()}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        x, g = message["model"].only(task.trainable), client["g"]

        def loss(y: Tree, batch: Batch) -> Tensor:
            distance = (y.only(task.trainable) - x).sqnorm()
            return plain(y, batch) - g.dot(y) + self.alpha / 2 * distance

        return loss

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, _ = base.local(client, message, batches)
            moved = (reply["model"] - message["model"]).only(task.trainable)
            return reply, {"g": client["g"] - self.alpha * moved}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            average = self.average(replies)
            y = average.only(task.trainable)
            present = len(replies) / task.clients
            h = server["h"] - self.alpha * present * (y - server["model"])
            return {"model": average | (y - h / self.alpha), "h": h}

        return Round(base.down, local, aggregate)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return {"h_norm": float(server["h"].norm())}
