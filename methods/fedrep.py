"""FedRep: clients share the representation and keep a classifier of their own.

Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML 2021,
Algorithm 1. Client: first its classifier alone, with the representation it was sent, then the representation
alone, with the new classifier; only the representation travels, and the server averages it. There is no
global classifier, so a table shows the mean over the clients' models.

The classifier goes `head_passes` times over the batches of the round (10 as in the paper's experiments), the
representation once. While the classifier learns, the representation stands still: its output is computed
once, with batch norm as in evaluation.
"""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from methods.base import Batch, Batches, Message, Reply, Round, State, Task, Tree
from methods.shared.averaging import Averaging
from methods.shared.losses import cross_entropy


class FedRep(Averaging):
    label: ClassVar[str] = "FedRep"
    has_global_model: ClassVar[bool] = False

    head_passes: int = Field(default=10, ge=1)
    """How often the classifier sees the batches of a round before the representation does."""

    def check(self, task: Task) -> None:
        if not any(not name.startswith(HEAD) for name in task.trainable):
            raise ValueError(
                "has nothing to share where only the classifier is trained: choose a model with trainable "
                "features or a trainable projection"
            )

    def server(self, task: Task) -> State:
        return {"model": task.initial.without(head_leaves(task.initial))}

    def client(self, task: Task) -> State:
        return {"head": task.initial.only(head_leaves(task.initial))}

    def round(self, task: Task) -> Round:
        def down(server: State, client_id: int) -> Message:
            return {"model": server["model"]}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            body = message["model"]
            with task.evaluation():
                embedded = [
                    batch._replace(x=task.project(body, task.encode(body, batch.x))) for batch in batches
                ]

            def head_loss(head: Tree, batch: Batch) -> Tensor:
                return cross_entropy(task.classify(head, batch.x), batch)

            head = task.train(client["head"], head_loss, embedded * self.head_passes)

            def body_loss(y: Tree, batch: Batch) -> Tensor:
                return cross_entropy(task.logits(y | head, batch.x), batch)

            return {"model": task.train(body, body_loss, batches)}, {"head": head}

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            return {"model": self.average(replies)}

        return Round(down, local, aggregate)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        assert client is not None, "there is no global classifier"
        return task.logits(server["model"] | client["head"], x)


HEAD = "classifier."


def head_leaves(tree: Tree) -> list[str]:
    return [name for name in tree if name.startswith(HEAD)]
