"""LoRA methods whose clients train one factor of every branch in a round, and get the other one as it is."""

from abc import ABC

from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy
from methods.modules.lora import SHARED, factors_of, require_lora
from methods.shared.averaging import Averaging


class OneFactor(Averaging, ABC):
    """`model` is what clients train and send back, with the head; `frozen` are the other factors.

    The server sends both, so that clients that miss rounds need no history. At first it is B that trains.
    """

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def server(self, task: Task) -> State:
        firsts = factors_of(task.model, SHARED)[0]
        return {"model": task.initial.without(firsts), "frozen": task.initial.only(firsts)}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {"model": server["model"], "frozen": server["frozen"]}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        def loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(params | message["frozen"], batch.x), batch)

        return loss

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        model: Tree = server["model"] | server["frozen"]
        return model
