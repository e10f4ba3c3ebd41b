"""DeepAFL: random features with residual blocks, all of them solved exactly from sums that clients send.

Tang et al., "DeepAFL: Deep Analytic Federated Learning", ICLR 2026, on features z of a frozen encoder, with
one-hot labels Y. X_0 = tanh(zA_0 + a_0), and block t adds X_{t+1} = X_t + F_tΔ_t with F_t = σ(X_tA_t + a_t).
A and a are drawn from the common seed and do not travel. For t = 0 … T − 1 the server solves
    W_t = argmin ‖Y − X_tW‖² + λ‖W‖²  and  Δ_t = argmin ‖Y − (X_t + F_tΔ)W_t‖² + λ_Δ‖Δ‖²,
the second one by FᵀF Δ WWᵀ + λ_Δ Δ = Fᵀ(Y − XW)Wᵀ in the eigenvectors of FᵀF and WWᵀ. W_T predicts: X_TW_T.
All samples count alike, so the result is that of the pooled data. There are T + 1 exchanges, all before
round 1 (recorded as round 0); in the rounds nothing is sent and nothing changes.

In exchange t < T a client sends the sums (X_t, F_t)ᵀ(X_t, F_t) and (X_t, F_t)ᵀY, from which both problems
can be solved, and in the last one X_TᵀX_T and X_TᵀY; symmetric ones as their upper triangles. The public
code has two exchanges per block instead. Clients keep nothing, so they are sent all blocks so far each
time. A and a are uniform in ±1/√inputs, as PyTorch draws linear layers and as in the public code. All of
this is in double precision; the public code inverts in single precision and warns of singular matrices.

The defaults are those of the public code's network but for X's width, which is 128 there. They suit tens of
thousands of samples: with few, λ = 10⁻⁴ overfits, and λ belongs in the search. Its script for CIFAR-100 has
20 blocks of width 1024, GELU, λ = 1 and λ_Δ = 0.05.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Prelude, Reply, State, Task
from methods.shared.one_round import OneRound
from methods.shared.regression import added, one_hot, ridge_solution, symmetric, triangle

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "gelu": torch.nn.functional.gelu,
    "relu": torch.relu,
}


class DeepAFL(OneRound):
    label = "DeepAFL"
    stacks_predictions = False

    layers: int = Field(default=5, ge=0)
    """T, the number of residual blocks; 5 in the public code, 20 in its script."""
    layer_width: int = Field(default=512, ge=1)
    """The width of X and of F; F's is 512 in the public code and X's 128, both are 1024 in its script."""
    lam: float = Field(default=1e-4, gt=0)
    """λ, the ridge of the classifiers; 10⁻⁴ in the public code, 1 in its script."""
    block_lam: float = Field(default=1e-4, gt=0)
    """λ_Δ, the ridge of the blocks; 10⁻⁴ in the public code, 0.05 in its script."""
    activation: Literal["tanh", "gelu", "relu"] = "tanh"
    """σ of the random features F; tanh in the public code, GELU in its script. That of X_0 is tanh."""

    def server(self, task: Task) -> State:
        width = self.layer_width
        shapes = {"blocks": (self.layers, width, width), "weights": (width, task.classes)}
        return {
            name: torch.zeros(shape, dtype=torch.float64, device=task.device)
            for name, shape in shapes.items()
        }

    def prelude(self, task: Task) -> Prelude:
        return [LayerUp(self, number) for number in range(self.layers + 1)]

    def represented(self, task: Task, x: Tensor, blocks: Sequence[Tensor] | Tensor) -> Tensor:
        """X after these blocks."""
        z = task.embed(task.initial, x).double()
        represented = torch.tanh(random_layer(task, z, self.layer_width, 0))
        for number, block in enumerate(blocks):
            represented = represented + self.random_features(task, represented, number) @ block
        return represented

    def random_features(self, task: Task, represented: Tensor, number: int) -> Tensor:
        """F of a block."""
        return ACTIVATIONS[self.activation](random_layer(task, represented, self.layer_width, number + 1))

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        scores: Tensor = self.represented(task, x, server["blocks"]) @ server["weights"]
        return scores


def random_layer(task: Task, x: Tensor, width: int, number: int) -> Tensor:
    """xA + a, the same for all parties."""
    draw = task.generator("random layer", number)
    inputs = x.shape[1]
    drawn = torch.rand(inputs + 1, width, generator=draw, dtype=x.dtype).to(x.device)
    scaled = (2 * drawn - 1) / inputs**0.5
    moved: Tensor = x @ scaled[:-1] + scaled[-1]
    return moved


def block_solution(gram: Tensor, products: Tensor, weights: Tensor, lam: float) -> Tensor:
    """Δ with gram Δ WWᵀ + λΔ = products Wᵀ."""
    values, vectors = torch.linalg.eigh(gram)
    class_values, class_vectors = torch.linalg.eigh(weights @ weights.T)
    turned = vectors.T @ products @ weights.T @ class_vectors
    solution: Tensor = vectors @ (turned / (values[:, None] * class_values + lam)) @ class_vectors.T
    return solution


@dataclass(frozen=True)
class LayerUp:
    """Clients get the blocks so far and send the sums of the next layer; the server solves for it."""

    method: DeepAFL
    number: int

    @property
    def is_last(self) -> bool:
        return self.number == self.method.layers

    def down(self, task: Task, server: State, client_id: int) -> Message:
        return {"blocks": server["blocks"][: self.number]} if self.number else {}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = batches.all()
        with task.evaluation():
            x = self.method.represented(task, own.x, message.get("blocks", ()))
        if not self.is_last:
            x = torch.cat([x, self.method.random_features(task, x, self.number)], dim=1)
        return {"gram": triangle(x.T @ x), "products": x.T @ one_hot(own.y, task.classes)}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        return server | {"sums": added(server.get("sums"), reply.content)}

    def finish(self, task: Task, server: State) -> State:
        if "sums" not in server:
            return server
        products, width = server["sums"]["products"], self.method.layer_width
        gram = symmetric(server["sums"]["gram"], len(products))
        weights = ridge_solution(gram[:width, :width], products[:width], self.method.lam)
        blocks = server["blocks"].clone()
        if not self.is_last:
            residual = products[width:] - gram[width:, :width] @ weights
            lam = self.method.block_lam
            blocks[self.number] = block_solution(gram[width:, width:], residual, weights, lam)
        return {"blocks": blocks, "weights": weights}
