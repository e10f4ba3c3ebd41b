"""FFA-LoRA: the first factor of every branch is frozen, the second one is trained and averaged.

Sun et al., "Improving LoRA in Privacy-preserving Federated Learning", ICLR 2024. A layer gives Wx + s·B A x
with s = α/r. A keeps the values it was drawn with; all clients draw the same ones from the seed, so that A
never travels. Client: FedAvg's steps on the cross-entropy, over all B and the head. Server: B ← Σ_k w_k B_k,
and the head likewise, with w_k = n_k / Σ n. Since A is common, the mean of the products is the product of the
means: Σ_k w_k B_k A = (Σ_k w_k B_k) A.

The paper is about language models without a head; ours is trained and averaged, as for the other methods.
"""

from torch import Tensor

from methods.base import Batch, Loss, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg
from methods.modules.lora import SHARED, factors_of, require_lora


class FFALoRA(FedAvg):
    label = "FFA-LoRA"
    neutral = "never trains the first factors"
    reads_seed = True

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def server(self, task: Task) -> State:
        return {"model": task.initial.without(frozen_factors(task))}

    def objective(self, task: Task, client: State, message: Message) -> Loss:
        frozen = frozen_factors(task)

        def loss(params: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(params | frozen, batch.x), batch)

        return loss

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        model: Tree = server["model"] | frozen_factors(task)
        return model


def frozen_factors(task: Task) -> Tree:
    """All A, as they were drawn."""
    return task.initial.only(factors_of(task.model, SHARED)[0])
