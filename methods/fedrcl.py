"""FedRCL: FedAvg with a contrast between the samples of a batch that does not let a class collapse.

Seo et al., "Relaxed Contrastive Learning for Federated Learning", CVPR 2024. With s_ij, the cosine of the
features of samples i and j, P_i, the other samples of i's class, and A_i, all other samples of the batch:
    CE + μ · mean_i [ SCL_i + β · penalty_i ],
    SCL_i = mean over j ∈ P_i of −log( e^{s_ij/τ} / Σ_{k∈A_i} e^{s_ik/τ} ),
    penalty_i = −log( e^{1/τ} / (e^{1/τ} + Σ_{j∈P_i, s_ij>λ} e^{s_ij/τ}) ).
The first pulls a class together; the second pushes pairs of a class apart that are more similar than λ. A
sample without another one of its class has an SCL of 0. μ = 0 is FedAvg exactly.

The paper contrasts the output of every stage of the network. Here it is the mean over what methods can see:
the encoder's output and the projector's, in a model that has one. Small batches with few classes leave little
to contrast; one of a single sample has no contrast at all.

Deviations of the public code: of every sample's pairs it takes only the least similar one of its class and
the two most similar ones of others; its penalty, whose form is taken over here for all pairs, is about that
single pair and is therefore 0 unless even the least similar pair is above λ.

With so small a τ, gradients are large in the first rounds. The public code clips them to the length 10, which
belongs to the optimiser here: give it `clip_norm: 10`. Without it a small CNN may die, and stay at chance.
"""

from pydantic import Field
from torch import Tensor, eye, finfo, where

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg
from methods.shared.losses import on_sphere


class FedRCL(FedAvg):
    label = "FedRCL"
    neutral = {"mu": 0.0}

    mu: float = Field(default=1.0, ge=0)
    """μ, the weight of the contrast; 1 in the public code."""
    beta: float = Field(default=1.0, ge=0)
    """β, the weight of the penalty; 1 in the public code."""
    threshold: float = Field(default=0.7, ge=-1, le=1)
    """λ, the similarity from which on pairs of a class are pushed apart; 0.7 in the public code."""
    temperature: float = Field(default=0.05, gt=0)
    """τ, the temperature; 0.05 in the public code."""

    def check(self, task: Task) -> None:
        if self.mu:
            task.require_trainable_embeddings()

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.mu):
            return super().objective(task, client, message)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.encode(params, batch.x)
            embedding = task.project(params, z)
            contrast = (self.contrast(z, batch) + self.contrast(embedding, batch)) / 2
            classified = cross_entropy(task.classify(params, embedding), batch)
            return classified + self.mu * batch.term("contrast", contrast)

        return loss

    def contrast(self, z: Tensor, batch: Batch) -> Tensor:
        """The mean of SCL + β · penalty over the batch's real samples."""
        z = on_sphere(z.flatten(1))
        cosines = z @ z.T
        real = batch.real.to(z.dtype)
        others = real[:, None] * real * (1 - eye(len(z), dtype=z.dtype, device=z.device))
        same = others * (batch.y[:, None] == batch.y)
        similar = cosines / self.temperature
        total = where(others > 0, similar, finfo(z.dtype).min).logsumexp(dim=1)
        pulled = (same * (total[:, None] - similar)).sum(dim=1) / same.sum(dim=1).clamp(min=1)
        crowded = same * (cosines > self.threshold)
        pushed = (crowded * ((cosines - 1) / self.temperature).exp()).sum(dim=1).log1p()
        return batch.mean(pulled + self.beta * pushed)
