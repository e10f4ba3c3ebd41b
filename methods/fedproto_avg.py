"""FedProto with averaged weights: FedAvg whose clients pull features to the global class means.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Eq. 3-8, in the
form that later papers compare with: prototypes and weights both travel. Client:
CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of z);
afterwards its prototypes are its class means of z under its final model. Server: the mean over the clients
that hold the class, or the mean weighted by count. In the first round there is no prototype, so no term.
The averaged classifier predicts, as in those papers; the nearest prototype is recorded beside it.
λ = 0 is FedAvg with prototypes that are not used.
"""

from collections.abc import Sequence

from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Reply, State, Task
from methods.fedavg import FedAvg
from methods.shared.prototypes import Prediction, PrototypeLearning


class FedProtoAvg(PrototypeLearning, FedAvg):
    label = "FedProto (avg)"
    neutral = {"lam": 0.0}

    lam: float = Field(default=2.0, ge=0)
    """λ, the weight of the pull; 2 as in the comparisons of the FedLSA and GGEUR papers."""
    prediction: Prediction = "classifier"
    """The averaged classifier's class (as in those papers), or the nearest prototype's; both are recorded."""

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        reply, kept = super().local(task, client, message, batches)
        return reply | self.local_prototypes(task, reply["model"], batches), kept

    def aggregate(self, task: Task, server: State, replies: Sequence[Reply]) -> State:
        return super().aggregate(task, server, replies) | self.global_prototypes(server, replies)

    def anchored(self, task: Task, server: State, x: Tensor) -> tuple[Tensor, Tensor] | None:
        if not ("known" in server and server["known"].all()):
            return None
        return self.scaled(task.encode(server["model"], x)), server["prototypes"]
