"""FedRoD: a shared head learns as if classes were balanced, a private one what a client's own data say.

Chen and Chao, "On Bridging Generic and Personalized Federated Learning for Image Classification", ICLR 2022,
with linear personal heads. z is what the classifier works on, G the shared classifier, P the client's. A
client minimises, over z's network and G and P at once,
    CE(G(z) + γ log n, y) + CE(sg[G(z)] + P(sg[z]), y),
where n_c is the client's number of samples of class c (at least 1e-6 in the logarithm) and sg stops
gradients: the first term, a balanced softmax, trains the network and G, the second P alone. Network and G
travel and are averaged as in FedAvg; P is zero at the start and stays. The global model predicts with G(z), a
client with G(z) + P(z) of the server's network and G.

Defaults: γ = 1, which is balanced softmax as in the paper. Deviations: the paper also has hypernetworks for
P; where an optimiser clips gradients, those of both terms are clipped together.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from methods.base import Batch, Batches, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.shared.label_counts import label_counts

OWN = "own"
LEAST = 1e-6
"""The count of a class that a client does not have, in the logarithm."""


class FedRoD(FedAvg):
    label = "FedRoD"
    neutral = {"gamma": 0.0}

    gamma: float = Field(default=1.0, ge=0)
    """γ, how far the shared head is corrected for the client's class counts; 1 as in the paper."""

    def check(self, task: Task) -> None:
        if not isinstance(task.model.classifier, nn.Linear):
            raise ValueError("adds a linear head to a linear classifier: choose a model that ends in one")

    def client(self, task: Task) -> State:
        return {"head": task.initial.part("classifier").zeros()}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        counts = label_counts(batches, task.classes).to(torch.get_default_dtype())
        prior = self.gamma * counts.clamp(min=LEAST).log()
        own = client["head"].under(OWN)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.embed(params, batch.x)
            shared = task.classify(params, z)
            personal = shared.detach() + task.classify(params.below(OWN), z.detach())
            return cross_entropy(shared + prior, batch) + cross_entropy(personal, batch, "own_cross_entropy")

        trained = task.train(message["model"] | own, loss, batches, also=own)
        return {"model": trained.without(own)}, {"head": trained.below(OWN)}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        shared: Tree = server["model"]
        # the sum of two linear heads is the head of the summed weights
        return shared if client is None else shared | (shared.only(client["head"]) + client["head"])
