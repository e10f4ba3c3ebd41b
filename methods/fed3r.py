"""Fed3R: the classifier is ridge regression, solved exactly from sums that clients send once.

Fanì et al., "Accelerating Heterogeneous Federated Learning with Closed-form Classifiers", ICML 2024, on
features z of a frozen encoder. With z̃ = (z, 1) and the one-hot label y, clients send A_k = Σ z̃z̃ᵀ and
b_k = Σ z̃yᵀ once, before round 1 (recorded as round 0). Server: W = (Σ_k A_k + λI)⁻¹ Σ_k b_k, which is ridge
regression on all clients' samples however they are spread; the last row of W is the bias. Then every class's
column, bias included, is divided by the length of its weights (without the bias). Prediction: z̃ᵀW. In the
rounds nothing is sent and nothing changes.

All of this is in double precision. A_k is symmetric, so only its upper triangle, row by row, travels. λ also
weighs on the bias, as in the public code. A class without any sample has a column of zeros.

`random_features` = D > 0 is the paper's Fed3R-RF: z is replaced by √(2/D)·cos(zΩ/σ + u), Ω ~ N(0, I) of
width × D and u uniform in [0, 2π), which all parties draw from the common seed, so that they do not travel.
"""

import math

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Prelude, Reply, State, Task
from methods.shared.one_round import OneRound
from methods.shared.preludes import Upload
from methods.shared.regression import added, one_hot, ridge_solution, symmetric, triangle, with_one


class Fed3R(OneRound):
    label = "Fed3R"
    stacks_predictions = False

    lam: float = Field(default=0.01, gt=0)
    """λ, the ridge; 0.01 as in the paper."""
    normalise: bool = True
    """Divide every class's column of W by its length, as in the paper."""
    random_features: int = Field(default=0, ge=0)
    """D, the number of random features; 0: the encoder's features themselves. The paper has up to 10,000."""
    bandwidth: float = Field(default=10.0, gt=0)
    """σ of the kernel that random features approximate; to be tuned, as it depends on the features' scale."""

    def server(self, task: Task) -> State:
        width = self.random_features or task.model.embedding_size
        return {"weights": torch.zeros(width + 1, task.classes, dtype=torch.float64, device=task.device)}

    def prelude(self, task: Task) -> Prelude:
        return [SumsUp(self)]

    def features(self, task: Task, x: Tensor) -> Tensor:
        """z̃ of these samples, in double precision."""
        z = task.embed(task.initial, x).double()
        if self.random_features:
            draw = task.generator("random features")
            omega = torch.randn(z.shape[1], self.random_features, generator=draw, dtype=z.dtype)
            phase = 2 * math.pi * torch.rand(self.random_features, generator=draw, dtype=z.dtype)
            turned = z @ omega.to(z.device) / self.bandwidth + phase.to(z.device)
            z = math.sqrt(2 / self.random_features) * turned.cos()
        return with_one(z)

    def solved(self, gram: Tensor, products: Tensor) -> Tensor:
        """W from A and b."""
        weights = ridge_solution(gram, products, self.lam)
        if not self.normalise:
            return weights
        lengths = weights[:-1].norm(dim=0)
        scaled: Tensor = weights / torch.where(lengths > 0, lengths, 1.0)
        return scaled

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        scores: Tensor = self.features(task, x) @ server["weights"]
        return scores


class SumsUp(Upload):
    """Clients send A_k and b_k; the server adds them up and solves for W."""

    def __init__(self, method: Fed3R) -> None:
        self.method = method

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = batches.all()
        with task.evaluation():
            z = self.method.features(task, own.x)
        return {"gram": triangle(z.T @ z), "products": z.T @ one_hot(own.y, task.classes)}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        return server | {"sums": added(server.get("sums"), reply.content)}

    def finish(self, task: Task, server: State) -> State:
        if "sums" not in server:
            return server
        products = server["sums"]["products"]
        gram = symmetric(server["sums"]["gram"], len(products))
        return {"weights": self.method.solved(gram, products)}
