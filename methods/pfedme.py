"""pFedMe: a client's own model is a proximal point of the shared one, which moves towards these points.

Dinh et al., "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020, Algorithm 1 with β = 1. In
a round a client starts with θ = w = the model it was sent. For every batch, in order: K steps of plain SGD of
rate η_p on that one batch,
    θ ← θ − η_p (∇f(θ) + λ (θ − w)),
then w ← w − η λ (w − θ). w travels and is averaged as in FedAvg; θ goes on from batch to batch and stays with
the client, which predicts with the θ of its last round. Buffers are those of θ.

Defaults: λ = 15, K = 5, η_p = 0.09 and η = 0.005, the authors' for a network on MNIST. The suite's optimiser
is not used. Deviation: weights by numbers of samples unless `weighting` says uniform, which the paper has.
"""

from pydantic import Field
from torch import Tensor

from methods.base import SGD, Batch, Batches, Message, State, Task, Tree, where
from methods.fedavg import FedAvg


class PFedMe(FedAvg):
    label = "pFedMe"
    neutral = "moves the model towards proximal points at every setting"

    lam: float = Field(default=15.0, gt=0)
    """λ, the strength of the pull; 15 in the authors' runs, where 10 to 30 does well."""
    inner_steps: int = Field(default=5, ge=1)
    """K, the steps to a proximal point; 5 in the paper."""
    personal_lr: float = Field(default=0.09, gt=0)
    """η_p, the rate of these steps; 0.09 in the authors' runs, and below 2/λ to be stable."""
    outer_lr: float = Field(default=0.005, gt=0)
    """η, the rate of the shared model, whose gradient is λ (w − θ); 0.005 in the authors' runs."""

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        plain = self.objective(task, client, message)
        own = shared = message["model"]
        for batch in batches:
            centre = task.trained(shared)

            def loss(params: Tree, batch: Batch, centre: Tree = centre) -> Tensor:
                pull = self.lam / 2 * task.trained(params).sqdist(centre)
                return plain(params, batch) + batch.term("pull", pull)

            own = task.train(own, loss, [batch] * self.inner_steps, SGD(lr=self.personal_lr))
            moved = own | (centre - self.outer_lr * self.lam * (centre - own))
            shared = moved if batch.live is None else where(batch.live, moved, shared)
        return {"model": shared}, {"model": own}
