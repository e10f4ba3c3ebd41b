"""FedLSA: learnable semantic anchors on the unit sphere, made by the server, approached by the clients.

Fu et al., "Beyond Federated Prototype Learning: Learnable Semantic Anchors with Hyperspherical Contrast for
Domain-Skewed Data", AAAI 2025. Every embedding is h = nor(φ(z)), and the classifier ϕ works on h.

Server, after averaging: anchors A = nor(Θ(R)) with a matrix R (classes × I) and a two-layer MLP Θ: I → I → L,
both kept between rounds, trained with E_s Adam steps while the averaged ϕ is frozen, on
    L_ACE + α L_SEP,  L_ACE = CE(ϕ(a_i), i),  L_SEP = mean_i log[ Σ_{j≠i} exp(a_i·a_j / τ) / (C − 1) ].
Client: CE(ϕ(h), y) + λ L_COM,  L_COM = CE(h·Aᵀ / τ, y). In the first round the anchors are those trained
against the initial ϕ.

Deviations: the paper prints SGD for the anchors (`anchor_optimiser`), has τ outside the exponential in Eq. 4
and does not normalise A; here the anchors are trained with Adam, τ is inside, and anchors have length 1.
Without `use_projector`, sphere and anchors are in the space of z, h = nor(z), and the projector is the first
layer of the classifier. Without `share_projector`, every client keeps a projector of its own; the server's
stays the initial one, so that such a run is judged by the clients' own accuracy. Ablation:
`compactness` off replaces L_COM by the paper's pull ‖h − a_y‖²; `separation` off drops L_SEP; both off is
FedAvg with the classifier on the sphere, without any anchors.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from methods.base import (
    SGD,
    Adam,
    Batch,
    Batches,
    Loss,
    Message,
    Reply,
    State,
    Task,
    Tree,
    cross_entropy,
    minimise,
    option,
)
from methods.fedavg import FedAvg
from methods.shared.losses import on_sphere
from methods.shared.two_layers import new_layers, two_layers


class FedLSA(FedAvg):
    label = "FedLSA"
    neutral = "classifies points on the sphere at every setting"
    stacks_server = False

    lam: float = Field(default=0.7, ge=0)
    """λ, the weight of the compactness loss; the paper picks 0.1 or 0.7, depending on the dataset."""
    alpha: float = Field(default=0.4, ge=0)
    """α, the weight of the separation loss; the paper picks 0.02 or 0.4, depending on the dataset."""
    tau: float = Field(default=0.1, gt=0)
    """τ, the temperature of both contrasts; the paper picks 0.1 or 0.2, depending on the dataset."""
    compactness: bool = True
    """L_COM on the clients; off: the pull ‖h − a_y‖² of the paper's ablation."""
    separation: bool = True
    """L_SEP on the server; off: L_ACE alone trains the anchors, as in the paper's ablation."""
    server_steps: int = Field(default=500, ge=0)
    """E_s, the steps that train the anchors every round; 500 as in the paper."""
    server_lr: float = Field(default=1e-3, gt=0)
    """The learning rate of these steps; 1e-3 as in the paper, with Adam."""

    anchor_optimiser: Literal["adam", "sgd"] = option("adam")
    """What trains the anchors; the paper prints SGD."""
    use_projector: bool = option(True)
    """Whether embeddings are the projector's output, as in the paper, or the encoder's."""
    share_projector: bool = option(True)
    """Whether the projector travels and is averaged like the rest, or stays with each client."""

    @property
    def uses_anchors(self) -> bool:
        """False for the ablation without either loss."""
        return self.compactness or self.separation

    def check(self, task: Task) -> None:
        if self.uses_anchors and self.lam > 0:
            task.require_trainable_embeddings()
        if not self.share_projector and not task.initial.part("projector"):
            raise ValueError("has share_projector = false, but the model has no projector: choose model cnn")

    def server(self, task: Task) -> State:
        state = super().server(task)
        if not self.uses_anchors:
            return state
        return state | self.renewed_anchors(task, state["model"], self.anchor_maker(task))

    def client(self, task: Task) -> State:
        return {} if self.share_projector else {"projector": task.initial.part("projector")}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        anchors = message.get("anchors")

        def loss(params: Tree, batch: Batch) -> Tensor:
            h = self.embed(task, params, batch.x)
            classified = cross_entropy(self.classify(task, params, h), batch)
            if anchors is None:
                return classified
            if self.compactness:
                contrast = cross_entropy(h @ anchors.T / self.tau, batch, term="")
                return classified + batch.term("compactness", self.lam * contrast)
            pull = batch.mean((h - anchors[batch.y]).square().sum(dim=1))
            return classified + batch.term("pull", self.lam * pull)

        return loss

    def down(self, task: Task, server: State, client_id: int) -> Message:
        message: Message = {key: server[key] for key in ("model", "anchors") if key in server}
        if self.share_projector:
            return message
        return message | {"model": without_projector(server["model"])}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        if self.share_projector:
            return super().local(task, client, message, batches)
        start = message["model"] | client["projector"]
        trained = task.train(start, self.objective(task, client, message), batches)
        return {"model": without_projector(trained)}, {"projector": trained.part("projector")}

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        averaged = super().aggregate(task, server, replies)
        server = averaged | {"model": server["model"] | averaged["model"]}
        if not self.uses_anchors:
            return server
        return server | self.renewed_anchors(task, server["model"], server["anchor_maker"])

    def renewed_anchors(self, task: Task, model: Tree, maker: Tree) -> State:
        """R and Θ after this round's steps against the model's classifier, and the anchors they make."""

        def loss(maker: Tree) -> Tensor:
            anchors = anchors_of(maker)
            return self.anchor_loss(task, model, anchors)

        rule = {"adam": Adam, "sgd": SGD}[self.anchor_optimiser]
        maker = minimise(maker, loss, self.server_steps, rule(lr=self.server_lr))
        return {"anchor_maker": maker, "anchors": anchors_of(maker)}

    def anchor_loss(self, task: Task, model: Tree, anchors: Tensor) -> Tensor:
        """L_LSA, what the server minimises."""
        classified = self.anchor_cross_entropy(task, model, anchors)
        return classified + self.alpha * separation_loss(anchors, self.tau) if self.separation else classified

    def anchor_cross_entropy(self, task: Task, model: Tree, anchors: Tensor) -> Tensor:
        """L_ACE: whether the model's classifier takes every anchor for its own class."""
        labels = torch.arange(task.classes, device=anchors.device)
        return F.cross_entropy(self.classify(task, model, anchors), labels)

    def anchor_maker(self, task: Task) -> Tree:
        """R and Θ at the start: R standard normal, Θ with PyTorch's usual bounds for linear layers."""
        draw, wide = task.generator("anchors"), task.model.feature_size
        semantics = Tree({"R": torch.randn(task.classes, wide, generator=draw)})
        width = task.model.embedding_size if self.use_projector else wide
        return (semantics | new_layers(wide, wide, width, draw)).to(task.device)

    def embed(self, task: Task, params: Tree, x: Tensor) -> Tensor:
        """h = nor(φ(ψ(x))), or nor(ψ(x)) without the projector."""
        return on_sphere(task.embed(params, x) if self.use_projector else task.encode(params, x))

    def classify(self, task: Task, params: Tree, h: Tensor) -> Tensor:
        """The logits for points on the sphere."""
        return task.classify(params, h) if self.use_projector else task.logits_from(params, h)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        model = server["model"] | client["projector"] if client and "projector" in client else server["model"]
        return self.classify(task, model, self.embed(task, model, x))

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        return (self.embed(task, server["model"], x), server["anchors"]) if self.uses_anchors else None

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        if not self.uses_anchors:
            return {}
        model, anchors = server["model"], server["anchors"]
        whole = {"anchor_loss": float(self.anchor_loss(task, model, anchors))} if task.records_losses else {}
        return {
            "anchor_classification": float(self.anchor_cross_entropy(task, model, anchors)),
            "anchor_separation": float(separation_loss(anchors, self.tau)),
            **whole,
        }


def without_projector(model: Tree) -> Tree:
    """What is shared where every client keeps its projector."""
    return model.without(model.part("projector"))


def anchors_of(maker: Tree) -> Tensor:
    """A = nor(Θ(R))."""
    return on_sphere(two_layers(maker, maker["R"]))


def separation_loss(anchors: Tensor, tau: float) -> Tensor:
    """L_SEP: how close the anchors are to each other; smallest for a simplex."""
    classes = len(anchors)
    own = torch.eye(classes, dtype=torch.bool, device=anchors.device)
    others = (anchors @ anchors.T / tau).masked_fill(own, float("-inf"))
    return (others.logsumexp(dim=1) - math.log(classes - 1)).mean()
