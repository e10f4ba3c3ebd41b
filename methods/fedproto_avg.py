"""FedProto with averaged weights: FedAvg whose clients pull features to the global class means.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Eq. 3-8, in the
form that later papers compare with: prototypes and weights both travel. Client:
CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of z);
afterwards its prototypes are its class means of z under its final model. Server: the mean over the clients
that hold the class, or the mean weighted by count. In the first round there is no prototype, so no term.
The averaged classifier predicts, as in those papers; the nearest prototype is recorded beside it.
λ = 2 follows the FedLSA and GGEUR comparisons; λ = 0 is FedAvg with prototypes that nobody uses.
"""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Reply, Round, State, Task
from methods.fedavg import FedAvg
from methods.shared.prototypes import Prediction, PrototypeLearning


class FedProtoAvg(PrototypeLearning, FedAvg):
    label: ClassVar[str] = "FedProto (avg)"

    lam: float = Field(default=2.0, ge=0)
    """λ, the weight of the pull."""
    prediction: Prediction = "classifier"

    def round(self, task: Task) -> Round:
        base = super().round(task)

        def down(server: State, client_id: int) -> Message:
            message = base.down(server, client_id)
            return message | {key: server[key] for key in ("prototypes", "known") if key in server}

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            reply, client = base.local(client, message, batches)
            return reply | self.local_prototypes(task, reply["model"], batches), client

        def aggregate(server: State, replies: Sequence[Reply]) -> State:
            return base.aggregate(server, replies) | self.global_prototypes(server, replies)

        return Round(down, local, aggregate)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        return self.predict_with(task, server, server["model"], x)

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        if not ("known" in server and server["known"].all()):
            return None
        return self.scaled(task.encode(server["model"], x)), server["prototypes"]
