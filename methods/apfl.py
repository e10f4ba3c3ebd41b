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

from methods.base import Batch, Batches, Message, State, Task, Tree, cross_entropy
from methods.core.optimisers import SGD
from methods.core.training import train
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
        prefixed = Tree({f"{OWN}.{name}": leaf for name, leaf in own.items()})

        def loss(y: Tree, batch: Batch) -> Tensor:
            shared = y.without(prefixed)
            mix = mixed(task, y.below(OWN), shared.detach(), alpha)
            return plain(shared, batch) + cross_entropy(task.logits(mix, batch.x), batch, "own_cross_entropy")

        trainable = {*task.trainable, *(f"{OWN}.{name}" for name in task.trainable)}
        y = train(message["model"] | prefixed, loss, batches, task.optimiser, trainable, task.mode)
        return {"model": y.without(prefixed)}, {"model": y.below(OWN), "alpha": alpha}

    def adapted(self, task: Task, client: State, message: Message, batches: Batches) -> Tensor:
        """α after one step on the round's first batch; ∂f(v̄)/∂α is ⟨v − w, ∇f(v̄)⟩."""
        own = _copied(client["model"])  # as a step may change a model's buffers

        def loss(y: Tree, batch: Batch) -> Tensor:
            mix = mixed(task, own, message["model"], y["alpha"])
            return cross_entropy(task.logits(mix, batch.x), batch, term="")

        step = SGD(lr=task.optimiser.lr)
        start, first = Tree({"alpha": client["alpha"]}), next(iter(batches))._replace(terms=None)
        return train(start, loss, [first], step, mode=task.mode)["alpha"].clamp(0, 1)

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        shared: Tree = server["model"]
        return shared if client is None else mixed(task, client["model"], shared, client["alpha"])


def mixed(task: Task, own: Tree, shared: Tree, alpha: Tensor) -> Tree:
    """α v + (1 − α) w for what is trained, and the buffers of v."""
    names = [name for name in own if name in task.trainable]
    return own | (own.only(names) * alpha + shared.only(names) * (1 - alpha))


def _copied(model: Tree) -> Tree:
    return Tree({name: leaf.clone() for name, leaf in model.items()})
