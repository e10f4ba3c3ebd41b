"""FedProto: only class prototypes travel; every client keeps a model of its own.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Algorithm 1.
Client: CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of
z); afterwards its prototypes are its class means of z under its final model. Server: per class the mean over
the clients that hold it, or the mean weighted by count. In the first round there is no prototype, so no term.

A client predicts the class whose global prototype is nearest to z, as in the paper, or with its own
classifier (`prediction`). λ = 1 is the paper's for all its datasets. All clients begin with the same weights.
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from methods.base import Batches, Message, Round, State, Task
from methods.shared.prototypes import Prediction, PrototypeLearning


class FedProto(PrototypeLearning):
    label: ClassVar[str] = "FedProto"
    has_global_model: ClassVar[bool] = False

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull."""
    prediction: Prediction = "prototypes"

    def server(self, task: Task) -> State:
        return {}

    def client(self, task: Task) -> State:
        return {"model": task.initial}

    def round(self, task: Task) -> Round:
        def down(server: State, client_id: int) -> Message:
            return dict(server)

        def local(client: State, message: Message, batches: Batches) -> tuple[Message, State]:
            y = task.train(client["model"], self.objective(task, client, message), batches)
            return self.local_prototypes(task, y, batches), {"model": y}

        return Round(down, local, self.global_prototypes)

    def predict(self, task: Task, server: State, client: State | None, x: Tensor) -> Tensor:
        assert client is not None, "there is no global model"
        return self.predict_with(task, server, client["model"], x)

    def observe(self, task: Task, server: State) -> Mapping[str, float]:
        return {"classes_with_prototype": float(server["known"].sum())} if server else {}
