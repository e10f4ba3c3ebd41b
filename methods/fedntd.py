"""FedNTD: the client's model keeps the server's opinion on all classes but the true one.

Lee et al., "Preservation of the Global Knowledge by Not-True Distillation in Federated Learning", NeurIPS
2022: CE + β τ² · KL(softmax_{c≠y}(z_x / τ) ‖ softmax_{c≠y}(z_y / τ)), the mean over the batch, with logits
z_x of the server's model and z_y of the client's; the true class is taken out of both softmaxes. The factor
τ² keeps the term's gradient at one scale for all τ. β = 0 is FedAvg exactly.
"""

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg


class FedNTD(FedAvg):
    label = "FedNTD"
    neutral = {"beta": 0.0}

    beta: float = Field(default=1.0, ge=0)
    """β, the weight of the distillation; 1 as in the paper."""
    tau: float = Field(default=1.0, gt=0)
    """τ, the temperature of both softmaxes; 1 as in the paper."""

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.beta):
            return super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            logits = task.logits(params, batch.x)
            with task.evaluation():
                teacher = task.logits(message["model"], batch.x)
            divergence = batch.mean(not_true_divergence(logits, teacher, batch.y, self.tau))
            return cross_entropy(logits, batch) + batch.term(
                "distillation", self.beta * self.tau**2 * divergence
            )

        return loss


def not_true_divergence(student: Tensor, teacher: Tensor, y: Tensor, tau: float) -> Tensor:
    """Per sample KL(teacher ‖ student) over the classes that are not y."""
    places = torch.arange(student.shape[-1] - 1, device=y.device)
    not_true = places + (places >= y[:, None])
    log_p = (teacher.gather(-1, not_true) / tau).log_softmax(dim=-1)
    log_q = (student.gather(-1, not_true) / tau).log_softmax(dim=-1)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)
