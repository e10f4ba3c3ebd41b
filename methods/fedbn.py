"""FedBN: FedAvg whose batch-norm layers never leave the clients.

Li, Jiang, Zhang, Kamp and Dou, "FedBN: Federated Learning on Non-IID Features via Local Batch Normalization",
ICLR 2021, Algorithm 1. Client: the server's weights for all layers but batch norm, its own scale, shift,
running mean and running variance for these; CE on its own data. Server: the weighted average of all that
travels, so of everything but batch norm.

A model without a client's batch norm cannot predict, so there is no global one: for a domain, a table shows
the mean accuracy over the clients' own models, and the same for a domain that no client has. What the paper
reports is the accuracy of every client on data like its own: `evaluation: {personal: true}`.

Deviations: Algorithm 1 takes the plain mean of the clients' weights, which is `weighting: uniform`; the
default here is FedAvg's mean by samples, as for the other methods of a table.
"""

from torch import Tensor

from methods.base import Batches, Message, State, Task
from methods.fedavg import FedAvg


class FedBN(FedAvg):
    label = "FedBN"
    neutral = "keeps batch norm with the clients at every setting"
    has_global_model = False

    def check(self, task: Task) -> None:
        if not task.has_batch_norm:
            raise ValueError(
                "needs a model with batch norm: choose one, such as {name: cnn, use_bn: true} or "
                "timm:resnet18"
            )

    def server(self, task: Task) -> State:
        return {"model": task.initial.without(task.batch_norm_leaves)}

    def client(self, task: Task) -> State:
        return {"norm": task.initial.only(task.batch_norm_leaves)}

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        own = message["model"] | client["norm"]
        trained = task.train(own, self.objective(task, client, message), batches)
        return {"model": trained.only(message["model"])}, {"norm": trained.only(client["norm"])}

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        assert client is not None, "there is no global model"
        return task.logits(server["model"] | client["norm"], x)
