"""AFL: least squares, put together exactly from the solutions that clients send once.

He et al., "AFL: A Single-Round Analytic Approach for Federated Learning with Pre-trained Models", CVPR 2025,
on features z of a frozen encoder, the rows of X_k, with one-hot labels Y_k. Clients send, once and before
round 1 (recorded as round 0), C_k = X_kᵀX_k + γI and their own solution W_k = C_k⁻¹X_kᵀY_k. Server (the
paper's absolute aggregation law): W = (Σ_k C_k)⁻¹ Σ_k C_kW_k. This is ridge regression with λ = Kγ, so the
Kγ of the K clients is taken out of Σ_k C_k again: W = (Σ_k X_kᵀX_k)⁺ Σ_k X_kᵀY_k, least squares on all
samples however they are spread, and for λ → 0 Fed3R's W before its columns are normalised. Prediction: zᵀW.
In the rounds nothing is sent and nothing changes.

All of this is in double precision. C_k is symmetric, so only its upper triangle, row by row, travels. The
public code also sends C_k⁻¹, adds clients pair by pair, which gives the same, and takes out γ times the
number of all clients, which is wrong when one of them did not answer.

Without the ridge the result fits the training data as closely as it can. With about as many samples as
features that is overfitting at its worst; `keep_ridge` or Fed3R with a larger λ is better then. With fewer
samples than features, where the paper's inverse does not exist, the pseudo-inverse gives the limit λ → 0.
"""

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Prelude, Reply, State, Task
from methods.shared.one_round import OneRound
from methods.shared.preludes import Upload
from methods.shared.regression import added, one_hot, ridge_solution, symmetric, triangle, with_one


class AFL(OneRound):
    label = "AFL"
    stacks_predictions = False

    gamma: float = Field(default=1.0, gt=0)
    """γ, the ridge of every client's own solution; 1 in the public script. Matters only with `keep_ridge`."""
    keep_ridge: bool = False
    """Leave Kγ in, which is ridge regression with λ = Kγ; the paper takes it out."""
    bias: bool = False
    """Put a 1 at the end of z, as Fed3R does; the paper does not."""

    def server(self, task: Task) -> State:
        width = task.model.embedding_size + self.bias
        return {"weights": torch.zeros(width, task.classes, dtype=torch.float64, device=task.device)}

    def prelude(self, task: Task) -> Prelude:
        return [SolutionsUp(self)]

    def features(self, task: Task, x: Tensor) -> Tensor:
        """z of these samples, in double precision."""
        z = task.embed(task.initial, x).double()
        return with_one(z) if self.bias else z

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        scores: Tensor = self.features(task, x) @ server["weights"]
        return scores


class SolutionsUp(Upload):
    """Clients send C_k and W_k; the server puts them together."""

    def __init__(self, method: AFL) -> None:
        self.method = method

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = batches.all()
        with task.evaluation():
            z = self.method.features(task, own.x)
        gram, gamma = z.T @ z, self.method.gamma
        weights = ridge_solution(gram, z.T @ one_hot(own.y, task.classes), gamma)
        return {"gram": triangle(gram + gamma * torch.eye(len(gram)).to(gram)), "weights": weights}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        numbers, weights = reply.content["gram"], reply.content["weights"]
        products = symmetric(numbers, len(weights)) @ weights
        more = {"gram": numbers, "products": products, "clients": torch.ones_like(numbers[0])}
        return server | {"sums": added(server.get("sums"), more)}

    def finish(self, task: Task, server: State) -> State:
        if "sums" not in server:
            return server
        sums = server["sums"]
        gram = symmetric(sums["gram"], len(sums["products"]))
        if not self.method.keep_ridge:
            gram = gram - sums["clients"] * self.method.gamma * torch.eye(len(gram)).to(gram)
        return {"weights": torch.linalg.pinv(gram, hermitian=True) @ sums["products"]}
