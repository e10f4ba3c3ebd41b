"""FedPAC: features are pulled to common class centres, and clients get mixtures of heads that suit them.

Xu et al., "Personalized Federated Learning with Feature Alignment and Classifier Collaboration", ICLR 2023.
The model is a body, whose output is z, and a linear head. In a round client i is sent the body, a head of its
own and, for every class, a centre c and whether it is known; then, in this order:
1. Under the body it was sent: p_c, the share of class c among its n samples, μ_c, the mean of its z,
   h_c = p_c μ_c and v = (mean ‖z‖² − Σ_c ‖h_c‖²) / n.
2. The head takes `head_passes` passes over the round's batches on CE, the body fixed (as in evaluation).
3. The body takes the round's steps on CE + λ mean_i ‖z_i − c_{y_i}‖² / D over samples whose centre is known
   (0 for others; D = width of z), with the new head fixed.
4. Up: body, head, h (classes × D), v, and the class means of z under the new body with their counts.
Server: bodies by FedAvg's average; centres by counts, where a class that no one sent keeps its own; for every
client i of the round the weights that minimise Σ_j α_j² v_j + ‖Σ_j α_j (h_i − h_j)‖² over the simplex of the
round's clients, and head_i = Σ_j α_j head_j; other clients keep the head that the server has for them. A
client predicts with the server's body and the head that it trained last.

Defaults: λ = 1 and one pass of the head, as in the paper and its code. Deviations: the public code drops
weights below 1e-3 and solves by cvxpy; here projected gradient steps solve the same problem
(`methods/shared/simplex.py`). Class shares reach the server, as in the paper.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from methods.base import Batch, Batches, Message, Reply, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.shared.simplex import smallest_form


class FedPAC(FedAvg):
    label = "FedPAC"
    neutral = "has no global classifier"
    has_global_model = False

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull to the centres; 1 as in the paper."""
    head_passes: int = Field(default=1, ge=1)
    """Passes of the head over the round's batches before the body trains; 1 as in the paper."""

    def check(self, task: Task) -> None:
        task.require_trainable_embeddings()
        if not isinstance(task.model.classifier, nn.Linear):
            raise ValueError("mixes linear classifiers: choose a model that ends in one")

    def server(self, task: Task) -> State:
        head = self.client(task)["head"]
        return {
            "model": task.initial.without(head),
            "heads": head.map(lambda leaf: leaf.expand(task.clients, *leaf.shape).clone()),
            "centres": torch.zeros(task.classes, task.model.embedding_size, device=task.device),
            "known": torch.zeros(task.classes, device=task.device),
        }

    def client(self, task: Task) -> State:
        return {"head": task.initial.part("classifier")}

    def down(self, task: Task, server: State, client_id: int) -> Message:
        own = server["heads"].map(lambda leaf: leaf[client_id])
        return {"model": server["model"], "head": own, "centres": server["centres"], "known": server["known"]}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        body, centres, known = message["model"], message["centres"], message["known"]
        sent = class_statistics(task, body, batches)
        with task.evaluation():
            embedded = [batch.with_inputs(task.embed(body, batch.x)) for batch in batches]

        def head_loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.classify(params, batch.x), batch)

        head = task.train(message["head"], head_loss, embedded * self.head_passes)

        def body_loss(params: Tree, batch: Batch) -> Tensor:
            z = task.embed(params, batch.x)
            apart = (z - centres[batch.y]).square().mean(dim=1) * known[batch.y]
            pull = batch.term("pull", self.lam * batch.mean(apart))
            return cross_entropy(task.classify(head, z), batch) + pull

        trained = task.train(body, body_loss, batches)
        now = class_statistics(task, trained, batches)
        statistics = {"h": sent.h, "v": sent.v, "means": now.means, "counts": now.counts}
        return {"model": trained, "head": head, **statistics}, {"head": head}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        content = [reply.content for reply in replies]
        counts, means = (torch.stack([each[key] for each in content]) for key in ("counts", "means"))
        total = counts.sum(dim=0)
        fresh = (counts[:, :, None] * means).sum(dim=0) / total.clamp(min=1)[:, None]
        return {
            "model": self.average(replies),
            "heads": self.mixed_heads(server["heads"], replies),
            "centres": torch.where(total[:, None] > 0, fresh, server["centres"]),
            "known": torch.where(total > 0, 1.0, server["known"]),
        }

    def mixed_heads(self, heads: Tree, replies: Sequence[Reply]) -> Tree:
        """The heads of all clients, those of the round replaced by their mixtures."""
        content = [reply.content for reply in replies]
        alpha = head_weights(
            torch.stack([each["h"] for each in content]), torch.stack([each["v"] for each in content])
        )
        at = torch.tensor([reply.client for reply in replies], device=alpha.device)

        def mixed(old: Tensor, *new: Tensor) -> Tensor:
            return old.index_copy(0, at, torch.tensordot(alpha.to(old), torch.stack(new), dims=1))

        return heads.map(mixed, *(each["head"] for each in content))

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global classifier"
        own: Tree = server["model"] | client["head"]
        return own

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        return {"classes_with_centre": float(server["known"].sum())} if client is None else {}


class Statistics(NamedTuple):
    counts: Tensor
    means: Tensor
    h: Tensor
    v: Tensor


def class_statistics(task: Task, body: Tree, batches: Batches) -> Statistics:
    """n_c, μ_c, h_c = p_c μ_c and v of the client's z."""
    classes = torch.arange(task.classes, device=task.device)[:, None]
    counts = sums = square = torch.zeros((), device=task.device)
    with task.evaluation():
        for batch in batches.once():
            z = task.embed(body, batch.x)
            members = (batch.y == classes).to(z.dtype) * batch.real
            counts, sums = counts + members.sum(dim=1), sums + members @ z
            square = square + (members.sum(dim=0) * z.square().sum(dim=1)).sum()
    n = counts.sum().clamp(min=1)
    h = sums / n
    return Statistics(counts, sums / counts.clamp(min=1)[:, None], h, (square / n - h.square().sum()) / n)


def head_weights(h: Tensor, v: Tensor) -> Tensor:
    """Row i: the weights of all clients' heads for client i, from h (m × classes × D) and v (m)."""
    flat = h.double().flatten(start_dim=1)
    apart = flat[:, None] - flat[None]  # client i minus client j
    forms = apart @ apart.mT + torch.diag(v.double().clamp(min=0))
    return smallest_form(forms)
