"""FedRep: clients share the representation and keep a classifier of their own.

Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML 2021,
Algorithm 1. Client: first its classifier alone, with the representation it was sent, then the representation
alone, with the new classifier; only the representation travels, and the server averages it. There is no
global classifier, so a table shows the mean over the clients' models. While the classifier learns, the
representation stands still: its output is computed once, with batch norm as in evaluation.
"""

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, State, Task, Tree, cross_entropy
from methods.fedavg import FedAvg


class FedRep(FedAvg):
    label = "FedRep"
    neutral = "has no global classifier"
    has_global_model = False

    head_passes: int = Field(default=10, ge=1)
    """Passes of the classifier over the round's batches before the representation trains; the paper's 10."""

    def check(self, task: Task) -> None:
        if not task.has_trainable_embeddings:
            raise ValueError(
                "has nothing to share where only the classifier is trained: choose a model with trainable "
                "features or a trainable projection"
            )
        task.require_trainable_classifier()

    def server(self, task: Task) -> State:
        return {"model": task.initial.without(self.client(task)["head"])}

    def client(self, task: Task) -> State:
        return {"head": task.initial.part("classifier")}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        body = message["model"]
        with task.evaluation():
            embedded = [batch.with_inputs(task.embed(body, batch.x)) for batch in batches]

        def head_loss(head: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.classify(head, batch.x), batch)

        head = task.train(client["head"], head_loss, embedded * self.head_passes)

        def body_loss(body: Tree, batch: Batch) -> Tensor:
            return cross_entropy(task.logits(body | head, batch.x), batch)

        return {"model": task.train(body, body_loss, batches)}, {"head": head}

    def parameters(self, task: Task, server: State, client: State | None) -> Tree:
        assert client is not None, "there is no global classifier"
        own: Tree = server["model"] | client["head"]
        return own
