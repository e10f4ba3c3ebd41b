"""FedSDG: shared adapters travel, private ones stay, and a gate in every block says how much they count.

A frozen transformer whose adapted layers give Wx + s·B_g A_g x + m·s·B_p A_p x with m = σ(a). The shared part
θ_g (A_g, B_g and the head) is all that travels; the private factors θ_p and the gates a stay with the client.
Client: CE + λ₁ Σ|m| + λ₂ P(θ_p), all three trained at once. Server: aggregation by alignment (see
`parts/alignment.py`), or a plain average with `alignment: null`. The global model has no private branch; a
client predicts with the server's θ_g and its own θ_p and a.

P is ‖θ_p‖² as printed (`factors`) or ‖B_p A_p‖² (`product`, 0 at the start); `bilateral` replaces |m| by
min(m, 1 − m). η_g is the learning rate of the suite's optimiser, which should be Adam at 1e-3 clipped at 1.0;
η_p and η_m are given here. λ₁ = 5e-4 and λ₂ = 1e-4 are in the grids {1e-4, 5e-4, 1e-3} and {1e-4, 1e-3}.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, Reply, Round, State, Task, Tree
from methods.core.optimisers import Group
from methods.core.training import train
from methods.modules.lora import GATE, PRIVATE, adapted_layers, first_factor, require_adapters
from methods.shared.alignment import Alignment, observed
from methods.shared.averaging import Averaging
from methods.shared.losses import cross_entropy

GATES = "gates"


class FedSDG(Averaging):
    label: ClassVar[str] = "FedSDG"

    lam1: float = Field(default=5e-4, ge=0)
    """λ₁, the weight of the gates' penalty."""
    lam2: float = Field(default=1e-4, ge=0)
    """λ₂, the weight of the private adapters' penalty."""
    private_lr: float = Field(default=1e-3, gt=0)
    """η_p."""
    gate_lr: float = Field(default=5e-3, gt=0)
    """η_m."""
    granularity: Literal["block", "layer", "global"] = "block"
    """One gate for every block, for every adapted layer, or for all."""
    gate_penalty: Literal["unilateral", "bilateral"] = "unilateral"
    private_penalty: Literal["factors", "product"] = "factors"
    private_init_std: float = Field(default=0.0, ge=0)
    """Of B_p at the start; with 0 the private branch begins as nothing."""
    alignment: Alignment | None = Alignment()

    def check(self, task: Task) -> None:
        require_adapters(task.model)
        if self.alignment is not None:
            self.alignment.check(task)

    def server(self, task: Task) -> State:
        figures = {} if self.alignment is None else {"alignment": self.alignment.start()}
        return super().server(task) | figures

    def client(self, task: Task) -> State:
        draw = task.generator("private adapters")
        private = {}
        for name, layer in adapted_layers(task.model).items():
            width, out = layer.frozen.in_features, layer.frozen.out_features
            second = self.private_init_std * torch.randn(out, layer.rank, generator=draw)
            for leaf, factor in zip(PRIVATE, (first_factor(layer.rank, width, draw), second), strict=True):
                private[f"{name}.{leaf}"] = factor.to(task.device)
        gates = torch.zeros(max(self.gate_of(task).values()) + 1, device=task.device)
        return {"private": Tree(private), GATES: gates}

    def gate_of(self, task: Task) -> dict[str, int]:
        """Adapted layer → the position of its gate."""
        layers = adapted_layers(task.model)
        position = {
            "block": [layer.block for layer in layers.values()],
            "layer": list(range(len(layers))),
            "global": [0] * len(layers),
        }
        return dict(zip(layers, position[self.granularity], strict=True))

    def penalty(self, private: Tree, gates: Tensor) -> Tensor:
        return self.lam1 * self.gate_cost(gates) + self.lam2 * self.private_cost(private)

    def gate_cost(self, gates: Tensor) -> Tensor:
        """Σ|m|, or Σ min(m, 1 − m)."""
        m = torch.sigmoid(gates)
        return (m if self.gate_penalty == "unilateral" else torch.minimum(m, 1 - m)).sum()

    def private_cost(self, private: Tree) -> Tensor:
        """‖θ_p‖², or ‖B_p A_p‖² = ⟨B_pᵀB_p, A_pA_pᵀ⟩, summed over the layers."""
        if self.private_penalty == "factors":
            return private.sqnorm()
        firsts, seconds = ([leaf for name, leaf in private.items() if name.endswith(end)] for end in PRIVATE)
        products = [((b.T @ b) * (a @ a.T)).sum() for a, b in zip(firsts, seconds, strict=True)]
        return torch.stack(products).sum()

    def round(self, task: Task) -> Round:
        own_rates = (Group(match="private_", lr=self.private_lr), Group(match=GATES, lr=self.gate_lr))
        optimiser = task.optimiser.model_copy(update={"groups": (*own_rates, *task.optimiser.groups)})
        places = self.gate_of(task)

        def down(server: State, client_id: int) -> Message:
            return {"model": server["model"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            own = list(client["private"])

            def loss(y: Tree, batch: Batch) -> Tensor:
                shared, private, gates = y.without([*own, GATES]), y.only(own), y[GATES]
                logits = task.logits(personal(shared, private, gates, places), batch.x)
                return cross_entropy(logits, batch) + self.penalty(private, gates)

            start = message["model"] | client["private"] | Tree({GATES: client[GATES]})
            y = train(start, loss, batches, optimiser, {*task.trainable, *own, GATES}, task.mode)
            return {"model": y.without([*own, GATES])}, {"private": y.only(own), GATES: y[GATES]}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            if self.alignment is not None:
                return self.alignment.aggregate(task, server, replies)
            return {"model": self.average(replies)}

        return Round(down, local, aggregate)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        if client is None:
            return task.logits(server["model"], x)
        own = personal(server["model"], client["private"], client[GATES], self.gate_of(task))
        return task.logits(own, x)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return observed(server["alignment"]) if self.alignment is not None else {}

    def observe_client(self, task: Task, server: State, client: State) -> Mapping[str, float]:
        m = torch.sigmoid(client[GATES])
        shared = server["model"].only(task.trainable)
        return {
            **{f"gate/{self.granularity}_{at}": value for at, value in enumerate(m.tolist())},
            "gate_mean": float(m.mean()),
            "gate_low_share": float((m < 0.1).float().mean()),
            "gate_high_share": float((m > 0.9).float().mean()),
            "private_to_shared": float(client["private"].norm() / shared.norm()),
        }


def personal(shared: Tree, private: Tree, gates: Tensor, places: Mapping[str, int]) -> Tree:
    """All parameters of a client's own model; `places` has the position of every layer's gate."""
    m = torch.sigmoid(gates)
    return shared | private | Tree({f"{layer}.{GATE}": m[at] for layer, at in places.items()})
