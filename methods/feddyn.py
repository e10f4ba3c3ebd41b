"""FedDyn: every client's objective is adjusted round by round until all agree on the minimum of the mean.

Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, Algorithm 1. Client:
minimise f_k(y) − ⟨g_k, y⟩ + α/2 ‖y − x‖², then g_k ← g_k − α(y − x). Server:
h ← h − α (1/K) Σ (y − x) over the round's clients, x ← mean(y) − h/α. So h is always the mean of all g_k.
Buffers are averaged. The mean is uniform as printed, since only then the fixed point minimises the mean loss.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, State, Task, Tree
from methods.fedavg import FedAvg


class FedDyn(FedAvg):
    label = "FedDyn"
    neutral = "has a server term that does not vanish with alpha"

    weighting: Literal["uniform"] = "uniform"
    """A client's weight in averages: the same for all, as the paper's fixed point needs it."""
    alpha: float = Field(default=0.1, gt=0)
    """α, the weight of the quadratic pull; the paper tunes it over {0.1, 0.01, 0.001}."""

    def server(self, task: Task) -> State:
        return super().server(task) | {"h": task.trained(task.initial).zeros()}

    def client(self, task: Task) -> State:
        return {"g": task.trained(task.initial).zeros()}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        sent = task.trained(message["model"])
        correction: Tree = client["g"]

        def loss(params: Tree, batch: Batch) -> Tensor:
            distance = task.trained(params).sqdist(sent)
            corrected = plain(params, batch) + batch.term("correction", -correction.dot(params))
            return corrected + batch.term("proximal", self.alpha / 2 * distance)

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        moved = task.trained(reply["model"] - message["model"])
        return reply, {"g": client["g"] - self.alpha * moved}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        average = self.average(replies)
        mean = task.trained(average)
        share = len(replies) / task.clients
        h = server["h"] - self.alpha * share * (mean - server["model"])
        return {"model": average | (mean - h / self.alpha), "h": h}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"h_norm": float(server["h"].norm())}
