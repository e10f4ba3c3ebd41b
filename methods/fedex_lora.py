"""FedEx-LoRA: what the mean of the factors misses of the mean of the products goes into the frozen weights.

Singhal et al., "FedEx-LoRA: Exact Aggregation for Federated and Efficient Fine-Tuning of Large Language
Models", ACL 2025. A layer gives (W + R)x + s·B A x, with R = 0 at the start. Client: FedAvg's steps on the
cross-entropy over A, B and the head. Server: Ā = Σ_k w_k A_k, B̄ = Σ_k w_k B_k and the head likewise, with
w_k = n_k / Σ n, and R ← R + s·(Σ_k w_k B_k A_k − B̄ Ā), in float64. So W + R + s·B̄Ā is exactly the mean of the
clients' effective weights W + R + s·B_k A_k.

R travels down in full, so that clients that miss rounds need no history; the paper sends the residual of a
round as factors of rank up to (clients × r), or cut by a singular value decomposition. The authors' code
takes plain means (`weighting: uniform`).
"""

from collections.abc import Sequence

from torch import Tensor

from methods.base import Batch, Loss, Message, Reply, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.modules.lora import lora_layers, require_lora
from methods.shared.products import mean_products


class FedExLoRA(FedAvg):
    label = "FedEx-LoRA"
    neutral = "moves the frozen weights at every setting"

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

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = self.average(replies)
        missed = {}
        for product in mean_products(task, replies, self.weights(replies)):
            of_means = averaged[product.second].double() @ averaged[product.first].double()
            residual = server["residual"][weight_of(product.layer)]
            step = product.scale * (product.mean - of_means)
            missed[weight_of(product.layer)] = (residual.double() + step).to(residual.dtype)
        return {**server, "model": averaged, "residual": Tree(missed)}

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
