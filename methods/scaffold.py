"""SCAFFOLD: control variates take the clients' drift out of every local step.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020, Algorithm 1
with option II. Client: y ← y − η(g − c_i + c), which is SGD on f(y) + ⟨c − c_i, y⟩; after its S real steps
c_i⁺ = c_i − c + (x − y) / (S·η), and y and c_i⁺ − c_i travel. Option I takes the gradient at the server's
model over all of the client's samples instead, c_i⁺ = ∇f_i(x), for one more pass over the data. Server:
x ← x + η_g · mean(y − x) and c ← c + (1/K) Σ (c_i⁺ − c_i) over the round's clients, divided by all K. Buffers
are averaged.

With anything but plain SGD, c_i⁺ is not a mean gradient, so other optimisers are refused; `optimiser` gives
this method its own where a suite's has momentum.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from methods.base import SGD, Batches, Loss, Message, Reply, State, Task, Tree, option, weighted_sum
from methods.fedavg import FedAvg


class Scaffold(FedAvg):
    label = "SCAFFOLD"
    neutral = "corrects drift at every setting"

    weighting: Literal["uniform"] = "uniform"
    """A client's weight in averages: the same for all, as in the paper."""
    server_lr: float = Field(default=1.0, gt=0)
    """η_g, the server's learning rate; 1 in the paper's experiments."""
    control_option: Literal["I", "II"] = option("II")
    """How a client renews its control variate: from the gradient at the server's model (I), or from the way
    that its own model went (II, as in the paper's experiments)."""

    def check(self, task: Task) -> None:
        if task.optimiser != SGD(lr=task.optimiser.lr):
            raise ValueError(
                "needs plain SGD, since its control variates are wrong with Adam, momentum, weight decay, "
                "clipping or groups: set its optimiser, say to {name: sgd, lr: 0.02}"
            )

    def server(self, task: Task) -> State:
        return super().server(task) | self.client(task)

    def client(self, task: Task) -> State:
        return {"control": task.trained(task.initial).zeros()}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return dict(server)

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        correction = message["control"] - client["control"]
        return lambda params, batch: plain(params, batch) + batch.term("correction", correction.dot(params))

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        if self.control_option == "I":
            control = self.gradient(task, message["model"], batches)
        else:
            moved = task.trained(message["model"] - reply["model"])
            control = client["control"] - message["control"] + moved / (batches.steps * task.optimiser.lr)
        return reply | {"control_change": control - client["control"]}, {"control": control}

    def gradient(self, task: Task, params: Tree, batches: Batches) -> Tree:
        """∇f_i: of the mean cross-entropy over all of the client's samples."""
        loss = super().objective(task, {}, {})
        total = task.trained(params).zeros()
        for batch in batches.once():
            # By a step of rate 1, as ever: `task.gradient` would give the same up to rounding.
            stepped = task.train(params, loss, [batch], SGD(lr=1.0))
            total = total + batch.count * task.trained(params - stepped)
        return total / batches.samples

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        changes = [reply.content["control_change"] for reply in replies]
        average, model = self.average(replies), task.trained(server["model"])
        return {
            "model": average | (model + self.server_lr * (task.trained(average) - model)),
            "control": server["control"] + weighted_sum(changes, [1 / task.clients] * len(changes)),
        }

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"control_norm": float(server["control"].norm())}
