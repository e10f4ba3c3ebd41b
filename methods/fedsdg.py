"""FedSDG: shared adapters travel, private ones stay, and a gate in every block says how much they count.

A frozen transformer whose adapted layers give Wx + s·B_g A_g x + m·s·B_p A_p x with m = σ(a). The shared part
θ_g (A_g, B_g and the head) is all that travels; the private factors θ_p and the gates a stay with the client.
Client: CE + λ₁ Σ|m| + λ₂ P(θ_p), all three trained at once. Server: aggregation by alignment (see
`methods/shared/alignment.py`), or a plain average with `alignment: null`. The global model has no private
branch; a client predicts with the server's θ_g and its own θ_p and a. A private head is part of what stays.

η_g is the learning rate of the suite's optimiser, which should be Adam at 1e-3 clipped at 1.0. Weight decay
is refused: it would pull the gates to ½, and the private factors twice.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Group, Loss, Message, Reply, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.modules.lora import PRIVATE, blocks_of, factors, fresh_branch, lora_layers, require_lora
from methods.shared.alignment import Alignment, observed

GATES = "gates"
HEAD = "classifier"


class FedSDG(FedAvg):
    label = "FedSDG"
    neutral = "trains private adapters at every setting"
    observes_clients = True
    stacks_server = False

    lam1: float = Field(default=5e-4, ge=0)
    """λ₁, the weight of the gates' penalty; tuned over {1e-4, 5e-4, 1e-3}."""
    lam2: float = Field(default=1e-4, ge=0)
    """λ₂, the weight of the private adapters' penalty; tuned over {1e-4, 1e-3}."""
    private_lr: float = Field(default=1e-3, gt=0)
    """η_p, the learning rate of the private adapters; 1e-3 as printed."""
    gate_lr: float = Field(default=5e-3, gt=0)
    """η_m, the learning rate of the gates; 5e-3 as printed, 1e-2 in the grid."""
    granularity: Literal["block", "layer", "global"] = "block"
    """One gate per block (as printed), one per adapted layer, or one for all."""
    gate_penalty: Literal["unilateral", "bilateral"] = "unilateral"
    """Σ|m| (as printed), or Σ min(m, 1 − m), which pushes gates to 0 or 1."""
    private_penalty: Literal["factors", "product"] = "factors"
    """P(θ_p): ‖θ_p‖² (as printed), or ‖B_p A_p‖², which is 0 at the start."""
    private_init_std: float = Field(default=0.0, ge=0)
    """Standard deviation of B_p at the start; with 0 the private branch begins as nothing."""
    private_head: bool = Field(default=False, exclude_if=lambda private: not private)
    """Keep the head with the client, too. The global model then has the initial head: see own accuracies."""
    alignment: Alignment | None = Alignment()
    """How the server weights updates by their agreement; None: a plain average."""

    def check(self, task: Task) -> None:
        require_lora(task.model)
        if task.optimiser.weight_decay:
            raise ValueError(
                "has penalties of its own that weight decay would distort: set the optimiser's "
                "weight_decay to 0"
            )
        if self.alignment is not None:
            self.alignment.check_alignment(task)

    def server(self, task: Task) -> State:
        figures = {} if self.alignment is None else {"alignment": self.alignment.start()}
        head = self.head(task)
        kept = {HEAD: head} if head else {}
        return {"model": task.initial.without(head)} | kept | figures

    def head(self, task: Task) -> Tree:
        """The initial head, if it is private."""
        return task.initial.part(HEAD) if self.private_head else Tree({})

    def client(self, task: Task) -> State:
        private = fresh_branch(task.model, task.generator("private adapters"), self.private_init_std)
        gates = torch.zeros(max(self.gate_of(task).values()) + 1, device=task.device)
        head = self.head(task)
        return {"private": Tree(private).to(task.device), GATES: gates} | ({HEAD: head} if head else {})

    def gate_of(self, task: Task) -> dict[str, int]:
        """Adapted layer → the position of its gate."""
        layers = list(lora_layers(task.model))
        if self.granularity == "block":
            return blocks_of(layers)
        return {name: at if self.granularity == "layer" else 0 for at, name in enumerate(layers)}

    def gate_cost(self, gates: Tensor) -> Tensor:
        """Σ|m|, or Σ min(m, 1 − m)."""
        m = torch.sigmoid(gates)
        return (m if self.gate_penalty == "unilateral" else torch.minimum(m, 1 - m)).sum()

    def private_cost(self, private: Tree) -> Tensor:
        """‖θ_p‖², or ‖B_p A_p‖² = ⟨B_pᵀB_p, A_pA_pᵀ⟩, summed over the layers."""
        if self.private_penalty == "factors":
            return private.sqnorm()
        firsts, seconds = (
            [leaf for name, leaf in private.items() if part in name] for part in (".lora_A.", ".lora_B.")
        )
        products = [((b.T @ b) * (a @ a.T)).sum() for a, b in zip(firsts, seconds, strict=True)]
        return torch.stack(products).sum()

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        places, own = self.gate_of(task), list(client["private"])

        def loss(params: Tree, batch: Batch) -> Tensor:
            shared, private, gates = params.without([*own, GATES]), params.only(own), params[GATES]
            logits = task.logits(personal(shared, private, gates, places), batch.x)
            gated = batch.term("gates", self.lam1 * self.gate_cost(gates))
            penalty = gated + batch.term("private", self.lam2 * self.private_cost(private))
            return cross_entropy(logits, batch) + penalty

        return loss

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own_rates = (Group(match=f".{PRIVATE}.", lr=self.private_lr), Group(match=GATES, lr=self.gate_lr))
        optimiser = task.optimiser.with_groups(*own_rates)
        head = client.get(HEAD, Tree({}))
        start = message["model"] | head | client["private"] | Tree({GATES: client[GATES]})
        own = [*client["private"], GATES]
        loss = self.objective(task, client, message)
        trained = task.train(start, loss, batches, optimiser, also=own)
        kept: State = {HEAD: trained.only(head)} if head else {}
        kept |= {"private": trained.only(client["private"]), GATES: trained[GATES]}
        return {"model": trained.only(message["model"])}, kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        if self.alignment is None:
            return super().aggregate(task, server, replies)
        return self.alignment.align(task, server, replies)

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        head = (server if client is None else client).get(HEAD, Tree({}))
        shared: Tree = server["model"] | head
        if client is None:
            return shared
        return personal(shared, client["private"], client[GATES], self.gate_of(task))

    def observe(self, task: Task, server: State, client: State | None = None) -> Mapping[str, float]:
        if client is None:
            return observed(server["alignment"]) if self.alignment is not None else {}
        m = torch.sigmoid(client[GATES])
        ratio = client["private"].norm() / task.trained(server["model"]).norm()
        shares = [(m < 0.1).float().mean(), (m > 0.9).float().mean()]
        # In one piece, since every number that is asked for is a wait for the device.
        *gates, mean, low, high, low_share, high_share, private = torch.cat(
            [m, torch.stack([m.mean(), m.min(), m.max(), *shares, ratio]).to(m)]
        ).tolist()
        return {
            **{f"gate/{self.granularity}_{at}": value for at, value in enumerate(gates)},
            "gate_mean": mean,
            "gate_min": low,
            "gate_max": high,
            "gate_low_share": low_share,
            "gate_high_share": high_share,
            "private_to_shared": private,
        }


def personal(shared: Tree, private: Tree, gates: Tensor, places: Mapping[str, int]) -> Tree:
    """All parameters of a client's own model; `places` has the position of every layer's gate.

    m·s·B_p A_p = s·(m·B_p) A_p: the gate needs no place in the model, as part of the private B.
    """
    m = torch.sigmoid(gates)
    seconds = {factors(layer, PRIVATE)[1]: at for layer, at in places.items()}
    return shared | private | Tree({name: m[at] * private[name] for name, at in seconds.items()})
