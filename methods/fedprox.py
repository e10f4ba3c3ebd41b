"""FedProx: FedAvg with a pull of the client's model towards the server's.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Eq. 2: CE + μ/2 ‖y − x‖².
μ = 0 is FedAvg exactly.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, is_off
from methods.fedavg import FedAvg


class FedProx(FedAvg):
    label = "FedProx"
    neutral = {"mu": 0.0}

    mu: float = Field(default=0.01, ge=0)
    """μ, the weight of the pull; the paper tunes it over {0.001, 0.01, 0.1, 1}."""

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        if is_off(self.mu):
            return plain
        sent = task.trained(message["model"])

        def loss(params: Tree, batch: Batch) -> Tensor:
            pull = self.mu / 2 * task.trained(params).sqdist(sent)
            return plain(params, batch) + batch.term("proximal", pull)

        return loss
