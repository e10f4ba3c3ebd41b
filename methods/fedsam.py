"""FedSAM: clients take gradients where the loss is worst nearby, and so look for flat minima.

Qu et al., "Generalized Federated Learning via Sharpness Aware Minimization", ICML 2022, Algorithm 1: with the
batch's gradient g = ∇f(y) over all trained parameters, a step follows ∇f(y + ρ·g/(‖g‖ + 10⁻¹²)), taken on the
same batch, by the client's optimiser. The server averages as FedAvg does. ρ = 0 is FedAvg exactly. A step
costs two gradients. Batch norm, if any, sees every batch twice.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, is_off
from methods.fedavg import FedAvg


class FedSAM(FedAvg):
    label = "FedSAM"
    neutral = {"rho": 0.0}

    rho: float = Field(default=0.05, ge=0)
    """ρ, how far away the gradient is taken; 0.05 as in the SAM paper."""

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        if is_off(self.rho):
            return plain

        def loss(params: Tree, batch: Batch) -> Tensor:
            uphill = task.gradient(params, plain, batch).detach()
            away = self.rho / (uphill.norm() + 1e-12) * uphill
            return plain(params | (task.trained(params) + away), batch)

        return loss
