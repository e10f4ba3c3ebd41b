"""FedDecorr: FedAvg with a penalty on correlated features, so that few dimensions do not collapse onto fewer.

Shi et al., "Towards Understanding and Mitigating Dimensional Collapse in Heterogeneous Federated Learning",
ICLR 2023, Eq. 6: CE + β/d² · ‖K‖²_F, where K is the correlation matrix of z over the batch's real samples and
d the width of z, which is what the classifier works on: z̃ = (z − mean) / √(variance + 10⁻⁸) with the variance
1/n, and K = z̃ᵀz̃/n. The public code leaves out K's diagonal, which is constant, and takes the unbiased
variance. β = 0 is FedAvg exactly.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg


class FedDecorr(FedAvg):
    label = "FedDecorr"
    neutral = {"beta": 0.0}

    beta: float = Field(default=0.1, ge=0)
    """β, the weight of the penalty; 0.1 as in the paper."""

    def check(self, task: Task) -> None:
        if self.beta:
            task.require_trainable_embeddings()

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.beta):
            return super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.embed(params, batch.x)
            penalty = batch.term("correlation", mean_square_correlation(z, batch))
            return cross_entropy(task.classify(params, z), batch) + self.beta * penalty

        return loss


def mean_square_correlation(z: Tensor, batch: Batch) -> Tensor:
    """‖K‖²_F / d² of the batch's real samples."""
    real = batch.real.to(z.dtype)
    count = real.sum().clamp(min=1)
    centred = (z - (real[:, None] * z).sum(dim=0) / count) * real[:, None]
    standard = centred / (centred.square().sum(dim=0) / count + 1e-8).sqrt()
    return (standard.T @ standard / count).square().mean()
