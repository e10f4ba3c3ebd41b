"""FedSA-LoRA: clients share the first factor of every branch, and keep the second one and the head.

Guo et al., "Selective Aggregation for Low-Rank Adaptation in Federated Learning", ICLR 2025. A layer gives
Wx + s·B A x with s = α/r. Client: FedAvg's steps on the cross-entropy over A, B and the head at once, from
the A it was sent and its own B and head. Only A travels, and the server averages it: A ← Σ_k w_k A_k with
w_k = n_k / Σ n. B and the head stay, and a client begins with B = 0 and the common initial head. There is no
global model: a client predicts with the server's A and its own B and head.
"""

from methods.base import Batches, Message, State, Task, Tree
from methods.fedavg import FedAvg
from methods.modules.lora import SHARED, factors_of, require_lora


class FedSALoRA(FedAvg):
    label = "FedSA-LoRA"
    neutral = "has no global model"
    has_global_model = False

    def check(self, task: Task) -> None:
        require_lora(task.model)

    def server(self, task: Task) -> State:
        return {"model": task.initial.only(first_factors(task))}

    def client(self, task: Task) -> State:
        return {"own": task.initial.without(first_factors(task))}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        start = message["model"] | client["own"]
        trained = task.train(start, self.objective(task, client, message), batches)
        return {"model": trained.only(message["model"])}, {"own": trained.only(client["own"])}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global model"
        own: Tree = server["model"] | client["own"]
        return own


def first_factors(task: Task) -> list[str]:
    """The names of all A."""
    return factors_of(task.model, SHARED)[0]
