"""FedALA: clients start from a learnt mixture, weight by weight, of the shared model and their own.

Zhang et al., "FedALA: Adaptive Local Aggregation for Personalized Federated Learning", AAAI 2023. Lower
layers are taken from the server; for the layers on top, with θ what the client sent last (the initial model
before its first round) and s what it was sent now, the client starts from
    θ̂ = s + (θ − s) ⊙ (1 − W),    W ← clip(W − η_w ∇_W f(θ̂), 0, 1),
which is θ + (s − θ) ⊙ W. W is 1 at the start and stays with the client; in every round it takes `passes`
passes over the client's samples, in their order, in pieces of 128, one step of plain SGD each. Then the
client trains θ̂ as in FedAvg; its model travels, is averaged, and is its θ of the next round. A client
predicts with the θ̂ of the server's new model, its own θ and its W as they are.

Defaults: η_w = 1 and the classifier as the layers on top (p = 1), as in the paper. Deviations: the paper
learns W on a random 80 % of the samples, and in a client's second round until its loss settles; here W takes
one pass over all of them in every round. The public code evaluates a client after W was learnt for the new
model; here W is the one of its last round.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor

from methods.base import SGD, Batch, Batches, Message, State, Task, Tree, cross_entropy, is_off
from methods.fedavg import FedAvg


class FedALA(FedAvg):
    label = "FedALA"
    neutral = {"eta": 0.0}

    eta: float = Field(default=1.0, ge=0)
    """η_w, the rate at which W learns; 1 in the paper; with 0 clients start from the shared model."""
    passes: int = Field(default=1, ge=1)
    """Passes of W over a client's samples in a round; 1 in the paper's later rounds."""
    layers: Literal["classifier", "all"] = "classifier"
    """The layers that are mixed; the others are taken from the server. The paper's p = 1, or all layers."""

    def mixed_layers(self, task: Task) -> Tree:
        """The initial parameters of the layers that are mixed."""
        return task.trained(task.initial if self.layers == "all" else task.initial.part("classifier"))

    def check(self, task: Task) -> None:
        if not self.mixed_layers(task):
            raise ValueError("mixes classifiers, and this model trains none: set layers to all")

    def client(self, task: Task) -> State:
        return {"model": task.initial, "weights": self.mixed_layers(task).zeros() + 1.0}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        weights = client["weights"] if is_off(self.eta) else self.learnt(task, client, message, batches)
        start = mixed(message["model"], client["model"], weights)
        trained = task.train(start, self.objective(task, client, message), batches)
        return {"model": trained}, {"model": trained, "weights": weights}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        shared: Tree = server["model"]
        return shared if client is None else mixed(shared, client["model"], client["weights"])

    def learnt(self, task: Task, client: State, message: Message, batches: Batches) -> Tree:
        """W after its steps of the round."""
        sent = message["model"].clone()  # as a step may change a model's buffers

        def loss(weights: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(mixed(sent, client["model"], weights), batch.x), batch, term="")

        weights: Tree = client["weights"]
        for _ in range(self.passes):
            for batch in batches.once():
                weights = task.train(weights, loss, [batch.unrecorded()], SGD(lr=self.eta))
                weights = weights.map(lambda leaf: leaf.clamp(0, 1))
        return weights


def mixed(sent: Tree, own: Tree, weights: Tree) -> Tree:
    """s + (θ − s) ⊙ (1 − W) where there are weights, else s."""
    s = sent.only(weights)
    return sent | (s + (own.only(weights) - s) * (1.0 + -weights))
