"""q-FedAvg: clients that the server's model serves worse weigh more, and the server's step is scaled to fit.

Li et al., "Fair Resource Allocation in Federated Learning", ICLR 2020, Algorithm 2, minimises
Σ_k w_k F_k^{q+1} / (q + 1), where F_k is the mean loss of client k. Clients train as in FedAvg and send, with
their model y_k, F_k(x): the loss of the model that they were sent, on all of their training samples. Server,
with Δw_k = L(x − y_k):
    Δ_k = F_k^q Δw_k,  h_k = q F_k^{q−1} ‖Δw_k‖² + L F_k^q,  x ← x − Σ_k w_kΔ_k / Σ_k w_kh_k.
The norm is over the trained parameters; buffers are averaged by w. 10⁻¹⁰ is added to F_k, as in the public
code. The paper draws clients with probability p_k = n_k/n and adds them up unweighted; here clients are drawn
uniformly, and p_k is their weight w_k (`weighting: uniform`: all clients count the same).

L is an upper bound on the curvature of F_k: 1/η, with the rate η that is best at q = 0, as in the paper. h_k
takes Δw_k for a gradient. After many local steps it is much larger than one, so the server's steps are
short and progress is slow for q > 0; a smaller `lipschitz` lengthens them. At q = 0 everything cancels out:
x ← Σ_k w_ky_k, which is FedAvg exactly.
"""

from collections.abc import Mapping, Sequence

import torch
from pydantic import Field

from methods.base import SGD, Batches, Message, Reply, State, Task, is_off
from methods.fedavg import FedAvg
from methods.shared.own_loss import own_loss

SMALLEST = 1e-10


class QFedAvg(FedAvg):
    label = "q-FedAvg"
    neutral = {"q": 0.0}
    stacks_server = False

    q: float = Field(default=1.0, ge=0)
    """q, the strength of fairness; the paper tunes it: 1 on two of its four datasets, 5 and 0.001 on the
    others."""
    lipschitz: float | None = Field(default=None, gt=0)
    """L; None: 1 over the clients' learning rate, as in the paper."""

    def check(self, task: Task) -> None:
        is_plain = isinstance(task.optimiser, SGD) and not task.optimiser.groups
        if self.q and self.lipschitz is None and not is_plain:
            raise ValueError(
                "takes 1 over the learning rate of SGD for L: set lipschitz, or the optimiser, say to "
                "{name: sgd, lr: 0.02}"
            )

    def server(self, task: Task) -> State:
        return super().server(task) | {"step_size": torch.ones((), device=task.device)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        loss = own_loss(task, message["model"], batches)
        reply, kept = super().local(task, client, message, batches)
        return reply | {"loss": loss}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        following = super().aggregate(task, server, replies)
        if is_off(self.q):
            return following
        model = task.trained(server["model"])
        lipschitz = self.lipschitz or 1 / task.optimiser.lr
        total, curvature, direct = model.zeros(), 0.0, 0.0
        for weight, reply in zip(self.weights(replies), replies, strict=True):
            update = model - reply.content["model"]
            loss = reply.content["loss"] + SMALLEST
            pull = weight * loss**self.q
            total = total + pull * update
            direct = direct + pull
            curvature = curvature + weight * self.q * loss ** (self.q - 1) * lipschitz * update.sqnorm()
        scale = 1 / (curvature + direct)
        return following | {
            "model": following["model"] | (model - scale * total),
            "step_size": torch.as_tensor(scale * direct),
        }

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"step_size": float(server["step_size"])}
