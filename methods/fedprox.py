"""FedProx: FedAvg with a pull of the client's model towards the server's.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Eq. 2: CE + μ/2 ‖y − x‖².
μ = 0 is FedAvg exactly.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree
from methods.core.numbers import always
from methods.fedavg import FedAvg


class FedProx(FedAvg):
    label = "FedProx"
    neutral = {"mu": 0.0}

    mu: float = Field(default=0.01, ge=0)
    """μ, the weight of the pull; the paper tunes it over {0.001, 0.01, 0.1, 1}."""

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        if always(self.mu, 0):
            return plain
        sent = message["model"].only(task.trainable)

        def loss(y: Tree, batch: Batch) -> Tensor:
            pull = self.mu / 2 * y.only(task.trainable).sqdist(sent)
            return plain(y, batch) + batch.term("proximal", pull)

        return loss
