"""FedAvg with a place for one mistake."""

from __future__ import annotations

from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree
from methods.fedavg import FedAvg


class Toy(FedAvg):
    """FedAvg under another name."""

    label = "Toy"


class ChangesLoss(Toy):
    """Adds something to the clients' loss."""

    def extra(self, task: Task, params: Tree, batch: Batch, client: State) -> Tensor:
        raise NotImplementedError

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        return lambda params, batch: plain(params, batch) + self.extra(task, params, batch, client)


class ChangesLocal(Toy):
    """Changes the reply or the private state after training."""

    def after(self, task: Task, client: State, reply: Message, batches: Batches) -> tuple[Message, State]:
        raise NotImplementedError

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return self.after(task, client, reply, batches)
