"""APFL: beside FedAvg, every client learns a model of its own and how much of it to mix into the shared one.

Deng et al., "Adaptive Personalized Federated Learning", arXiv 2003.13461, 2020, Algorithm 1. With w the model
of the round, v the client's own and v̄ = α v + (1 − α) w, a step on one batch is, for both at once,
    w ← w − η ∇f(w),    v ← v − η α ∇f(v̄),
each with the client's optimiser; w travels and is averaged as in FedAvg, v and α stay. α is adapted once per
round, on its first batch and before the steps: α ← clip(α − η ⟨v − w, ∇f(v̄)⟩, 0, 1), with v from the
client's last round (the initial model before its first) and w as it was sent. A client predicts with
α v + (1 − α) w, where w is the server's new model; buffers are those of v.

Defaults: α = 0.5 at the start, the middle of the paper's {0.25, 0.5, 0.75}; η for α is the optimiser's rate.
Deviation: where an optimiser clips gradients, those of w and v are clipped together.
"""

import torch
from pydantic import Field
from torch import Tensor

from methods.base import SGD, Batch, Batches, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg

OWN = "own"


class APFL(FedAvg):
    label = "APFL"

    alpha: float = Field(default=0.5, ge=0, le=1)
    """α, the share of a client's own model at the start; the paper tries 0.25, 0.5 and 0.75."""
    adaptive: bool = True
    """Whether α is learnt, as in the paper's adaptive variant."""

    def client(self, task: Task) -> State:
        return {"model": task.initial, "alpha": torch.tensor(self.alpha, device=task.device)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own: Tree = client["model"]
        alpha = self.adapted(task, client, message, batches) if self.adaptive else client["alpha"]
        plain = self.objective(task, client, message)
        prefixed = own.under(OWN)

        def loss(params: Tree, batch: Batch) -> Tensor:
            shared = params.without(prefixed)
            mix = mixed(task, params.below(OWN), shared.detach(), alpha)
            return plain(shared, batch) + cross_entropy(task.logits(mix, batch.x), batch, "own_cross_entropy")

        trained = task.train(message["model"] | prefixed, loss, batches, also=task.trained(own).under(OWN))
        return {"model": trained.without(prefixed)}, {"model": trained.below(OWN), "alpha": alpha}

    def adapted(self, task: Task, client: State, message: Message, batches: Batches) -> Tensor:
        """α after one step on the round's first batch; ∂f(v̄)/∂α is ⟨v − w, ∇f(v̄)⟩."""
        own = client["model"].clone()  # as a step may change a model's buffers

        def loss(params: Tree, batch: Batch) -> Tensor:
            mix = mixed(task, own, message["model"], params["alpha"])
            return cross_entropy(task.logits(mix, batch.x), batch, term="")

        start, first = Tree({"alpha": client["alpha"]}), next(iter(batches)).unrecorded()
        step = SGD(lr=task.optimiser.lr)
        return task.train(start, loss, [first], step, also=start)["alpha"].clamp(0, 1)

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        shared: Tree = server["model"]
        return shared if client is None else mixed(task, client["model"], shared, client["alpha"])


def mixed(task: Task, own: Tree, shared: Tree, alpha: Tensor) -> Tree:
    """α v + (1 − α) w for what is trained, and the buffers of v."""
    return own | (task.trained(own) * alpha + task.trained(shared) * (1 - alpha))
