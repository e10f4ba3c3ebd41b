"""FedAWA: FedAvg whose weights move to the clients whose updates agree with the averaged one.

Shi et al., "FedAWA: Adaptive Optimization of Aggregation Weights in Federated Learning Using Client Vectors",
CVPR 2025. With the client vectors τ_k = y_k − x and τ = Σ_k λ_kτ_k, the server takes `server_steps` steps on
    Σ_k λ_k ‖τ_k − τ‖ + Σ_k λ_k (1 − cos(y_k, x)),  λ = softmax(s) over the clients of the round,
by s, and then averages with the new λ: x ← Σ_k λ_k y_k. s lasts from round to round, and begins at the
logarithm of the clients' shares n_k/n, where λ is FedAvg's. (Kept is s_k − log n_k, which is the same, since
softmax does not see a common constant.) The distances are over the trained parameters; buffers are averaged
by λ, too. Steps are those of Adam, started again every round, with the public code's rate and betas.

The public code differs: it begins at s = n_k/n, so that λ is almost uniform and the sizes of clients are
lost; averages with λ as it was before the last step; and with partial participation gives a client the s of
whichever client stood at its place in the round before. Which distances are taken is as it has them.

One step of Adam changes every s_k by its rate, 0.001, whatever the gradient, so that with the defaults a
client's weight changes by at most 0.2 % a round, and the method stays close to FedAvg. That is needed: with
all weight on one client τ is its τ_k, and the objective almost 0. Many steps or a large rate end there, with
the model of a single client. No `server_steps` is FedAvg exactly. How far s has moved is recorded.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Adam, Reply, State, Task, Tree, minimise, weighted_sum
from methods.fedavg import FedAvg
from methods.shared.vectors import flattened


class FedAWA(FedAvg):
    label = "FedAWA"
    neutral = {"server_steps": 0}
    stacks_server = False

    server_steps: int = Field(default=1, ge=0)
    """Steps on the weights in every round; 1 as in the public code."""
    server_lr: float = Field(default=0.001, gt=0)
    """The learning rate of these steps, with Adam (β 0.5 and 0.999); 0.001 as in the public code."""

    def server(self, task: Task) -> State:
        return super().server(task) | {
            "moved": torch.zeros(task.clients, dtype=torch.float64, device=task.device)
        }

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        if self.server_steps == 0:
            return super().aggregate(task, server, replies)
        taking_part = [reply.client for reply in replies]
        models = [reply.content["model"] for reply in replies]
        start = torch.tensor(self.weights(replies), dtype=torch.float64, device=task.device).log()
        cost = disagreement(task, server["model"], models)
        before = Tree({"moved": server["moved"][taking_part]})
        after = minimise(
            before,
            lambda tree: cost((start + tree["moved"]).softmax(dim=0)),
            self.server_steps,
            Adam(lr=self.server_lr, betas=(0.5, 0.999)),
        )["moved"]
        moved: Tensor = server["moved"].clone()
        moved[taking_part] = after
        weights = (start + after).softmax(dim=0)
        return {"model": weighted_sum(models, weights.tolist()), "moved": moved}

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"moved_min": float(server["moved"].min()), "moved_max": float(server["moved"].max())}


def disagreement(task: Task, model: Tree, models: Sequence[Tree]) -> Callable[[Tensor], Tensor]:
    """The cost of weights λ: how far the client vectors are from their mean, and the models from x."""
    start = flattened(task.trained(model))
    ends = torch.stack([flattened(task.trained(each)) for each in models])
    vectors = ends - start
    turned = 1 - torch.nn.functional.cosine_similarity(ends, start[None])

    def cost(weights: Tensor) -> Tensor:
        weights = weights.to(vectors)
        apart = (vectors - weights @ vectors).norm(dim=1)
        total: Tensor = weights @ (apart + turned)
        return total

    return cost
