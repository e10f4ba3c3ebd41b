"""LoRA methods that put a part of what is learnt into the frozen weights."""

from abc import ABC

from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy
from methods.modules.lora import lora_layers, require_lora
from methods.shared.averaging import Averaging


class MovedWeights(Averaging, ABC):
    """A layer gives (W + R)x + s·B A x; the server keeps R, 0 at the start, and sends it in full.

    So clients that miss rounds need no history.
    """

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def server(self, task: Task) -> State:
        return super().server(task) | {"residual": frozen_weights(task).zeros()}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {"model": server["model"], "residual": server["residual"]}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        weights = frozen_weights(task) + message["residual"]

        def loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(params | weights, batch.x), batch)

        return loss

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        model: Tree = server["model"] | (frozen_weights(task) + server["residual"])
        return model


def weight_of(layer: str) -> str:
    """The name of a layer's frozen weight W."""
    return f"{layer}.base_layer.weight"


def frozen_weights(task: Task) -> Tree:
    """W of every layer with a branch."""
    names = map(weight_of, lora_layers(task.model))
    return Tree({name: task.model.get_parameter(name).detach() for name in names})
