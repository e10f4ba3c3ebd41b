"""SCAFFOLD: control variates take the clients' drift out of every local step.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020, Algorithm 1
with option II. Client: y ← y − η(g − c_i + c), which is SGD on f(y) + ⟨c − c_i, y⟩; after its S real steps
c_i⁺ = c_i − c + (x − y) / (S·η), and y and c_i⁺ − c_i travel. Server: x ← x + η_g · mean(y − x) and
c ← c + (1/K) Σ (c_i⁺ − c_i) over the round's clients, divided by all K. Buffers are averaged.

Anything but plain SGD makes c_i⁺ something else than a mean gradient, so it is refused; `optimiser` gives
this method its own where a suite's has momentum. η_g = 1 as in the paper's experiments; averages are uniform
as printed.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, Reply, Round, State, Task, Tree
from methods.core.optimisers import SGD
from methods.core.tree import weighted_sum
from methods.fedavg import FedAvg


class Scaffold(FedAvg):
    label: ClassVar[str] = "SCAFFOLD"

    weighting: Literal["uniform"] = "uniform"
    server_lr: float = Field(default=1.0, gt=0)
    """η_g."""

    def check(self, task: Task) -> None:
        if task.optimiser != SGD(lr=task.optimiser.lr):
            raise ValueError(
                "needs plain SGD, since its control variates are wrong with Adam, momentum, weight decay, "
                "clipping or groups: set its optimiser, say to {name: sgd, lr: 0.02}"
            )

    def server(self, task: Task) -> State:
        return super().server(task) | {"control": task.initial.only(task.trainable).zeros()}

    def client(self, task: Task) -> State:
        return {"control": task.initial.only(task.trainable).zeros()}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        correction = message["control"] - client["control"]

        def loss(y: Tree, batch: Batch) -> Tensor:
            return plain(y, batch) + correction.dot(y)

        return loss

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def down(server: State, client_id: int) -> Message:
            return base.down(server, client_id) | {"control": server["control"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, _ = base.local(client, message, batches)
            moved = (message["model"] - reply["model"]).only(task.trainable)
            control = client["control"] - message["control"] + moved / (batches.steps * task.optimiser.lr)
            return reply | {"control_change": control - client["control"]}, {"control": control}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            changes = [reply.content["control_change"] for reply in replies]
            average = self.average(replies)
            x = server["model"].only(task.trainable)
            return {
                "model": average | (x + self.server_lr * (average.only(task.trainable) - x)),
                "control": server["control"] + weighted_sum(changes, [1 / task.clients] * len(changes)),
            }

        return Round(down, local, aggregate)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return {"control_norm": float(server["control"].norm())}
