"""MOON: the client's representation stays close to the server's and away from its own of last time.

Li et al., "Model-Contrastive Federated Learning", CVPR 2021, Algorithm 1:
CE + μ · CE([cos(z, z_glob), cos(z, z_prev)] / T, target 0), where z_prev comes from the client's own model at
the end of its last participation, and before the first one from the server's model (the term is then
μ·log 2). Neither teacher has a gradient. z is the projector's output, as in the paper, and the encoder's in a
model without a projector. μ = 0 is FedAvg exactly.
"""

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Loss, Message, State, Task, Tree, cross_entropy, is_off, where
from methods.fedavg import FedAvg
from methods.shared.losses import on_sphere


class Moon(FedAvg):
    label = "MOON"
    neutral = {"mu": 0.0}

    mu: float = Field(default=1.0, ge=0)
    """μ, the weight of the contrast; the paper tunes over {0.1, 1, 5, 10}: 5 on CIFAR-10, 1 elsewhere."""
    temperature: float = Field(default=0.5, gt=0)
    """T, the temperature of the contrast; 0.5 as in the paper."""

    def check(self, task: Task) -> None:
        task.require_trainable_embeddings()

    def client(self, task: Task) -> State:
        return {"previous": task.initial, "took_part": torch.tensor(False, device=task.device)}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        if is_off(self.mu):
            return super().objective(task, client, message)
        server = message["model"]
        previous = where(client["took_part"], client["previous"], server)

        def loss(params: Tree, batch: Batch) -> Tensor:
            z = task.embed(params, batch.x)
            with task.evaluation():
                teachers = [task.embed(teacher, batch.x) for teacher in (server, previous)]
            cosines = torch.stack([(on_sphere(z) * on_sphere(t)).sum(dim=-1) for t in teachers], dim=-1)
            contrast = -(cosines / self.temperature).log_softmax(dim=-1)[:, 0]
            classified = cross_entropy(task.classify(params, z), batch)
            return classified + batch.term("contrast", self.mu * batch.mean(contrast))

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, _ = super().local(task, client, message, batches)
        return reply, {"previous": reply["model"], "took_part": torch.ones_like(client["took_part"])}
