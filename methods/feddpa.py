"""FedDPA: a global branch that is averaged, and beside it a private one trained on top of the global one.

Yang et al., "Dual-Personalizing Adapter for Federated Foundation Models", NeurIPS 2024, FedDPA-T. A client's
own layer gives Wx + (1−λ)·s·B_g A_g x + λ·s·B_p A_p x with s = α/r; the global model is Wx + s·B_g A_g x.
Client, in this order: steps on its own model's cross-entropy over A_p and B_p alone, with the global branch
and the head as they were sent; then as many steps of FedAvg, with the same batches, on the global model's
cross-entropy over A_g, B_g and the head, from what was sent. The latter travels, and the server averages it
with w_k = n_k / Σ n. The private branch stays; it begins with A_p drawn from the seed and B_p = 0.

The authors' code leaves out the private branch in the first round; ours is trained in it, too. The paper
weights the branches per sample by its likeness to the training samples when it meets other tasks at test
time; clients are tested on data like theirs here, so that λ is fixed, as in the authors' training. The paper
has no head; ours belongs to the global model, and the client's own model uses the server's.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.modules.lora import PRIVATE, SHARED, factors_of, fresh_branch, require_lora


class FedDPA(FedAvg):
    label = "FedDPA"

    mixing: float = Field(default=0.5, ge=0, le=1)
    """λ, the private branch's share in a client's own model; 0.5 in the authors' code."""

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def client(self, task: Task) -> State:
        branch = fresh_branch(task.model, task.generator("private adapters"))
        return {"private": Tree(branch).to(task.device)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        def own_loss(private: Tree, batch: Batch) -> Tensor:
            own = self.mixed(task, message["model"], private)
            return cross_entropy(task.logits(own, batch.x), batch, term="private")

        private = task.train(client["private"], own_loss, batches, also=client["private"])
        reply, _ = super().local(task, client, message, batches)
        return reply, {"private": private}

    def mixed(self, task: Task, shared: Tree, private: Tree) -> Tree:
        """The parameters of a client's own model; the shares are part of the second factors."""
        globals_, privates = (factors_of(task.model, adapter)[1] for adapter in (SHARED, PRIVATE))
        weighted = (1 - self.mixing) * shared.only(globals_) | self.mixing * private.only(privates)
        return shared | private | weighted

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        model: Tree = server["model"]
        return model if client is None else self.mixed(task, model, client["private"])
