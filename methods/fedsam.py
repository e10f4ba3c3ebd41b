"""FedSAM: clients take gradients where the loss is worst nearby, and so look for flat minima.

Qu et al., "Generalized Federated Learning via Sharpness Aware Minimization", ICML 2022, Algorithm 1: with the
batch's gradient g = ∇f(y) over all trained parameters, a step follows ∇f(y + ρ·g/(‖g‖ + 10⁻¹²)), taken on the
same batch, by the client's optimiser. The server averages as FedAvg does. ρ = 0 is FedAvg exactly. A step
costs two gradients. Batch norm, if any, sees every batch twice.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree
from methods.core.numbers import always
from methods.fedavg import FedAvg


class FedSAM(FedAvg):
    label = "FedSAM"
    neutral = {"rho": 0.0}

    rho: float = Field(default=0.05, ge=0)
    """ρ, how far away the gradient is taken; 0.05 as in the SAM paper."""

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        plain = super().objective(task, client, message)
        if always(self.rho, 0):
            return plain

        def loss(y: Tree, batch: Batch) -> Tensor:
            names = [name for name in y if name in task.trainable]
            fixed = y.without(names).as_dict()
            unnoted = batch._replace(terms=None)
            gradient = task.mode.gradient(plain, names, [y[name] for name in names], fixed, unnoted)
            uphill = Tree(zip(names, gradient, strict=True)).detach()
            away = self.rho / (uphill.norm() + 1e-12) * uphill
            return plain(y | (y.only(names) + away), batch)

        return loss
