"""FedProto's pull around any method whose clients send models.

λ · mean_i ‖z_i − P_{y_i}‖² / D is added to the inner method's loss, P the mean of the clients' class means
of z.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tests.references.plain import Case, flat_parameters, set_parameters
from tests.references.prototypes import class_means, global_means, pull

PLAIN = {"normalize_prototypes": False, "distance": "euclidean"}


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (Case({"lam": 0.8}, optimiser=inner.cases[0].optimiser),)

        def __init__(self, given: Any) -> None:
            self.lam = given.settings["lam"]
            self.prototypes: dict[int, Tensor] = {}
            self.uploads: list[dict[int, tuple[Tensor, int]]] = []
            super().__init__(given.inside())

        def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
            plain: Tensor = super().loss(model, x, y, client, number, step)
            return plain + self.lam * pull(model.encoder(x), y, self.prototypes, PLAIN)

        def client_round(self, client: int, number: int) -> Any:
            reply = super().client_round(client, number)
            sent = reply
            if isinstance(reply, tuple):  # an update, and something else
                sent = self.given.network()
                set_parameters(sent, flat_parameters(self.model).detach() + reply[0])
            self.uploads.append(class_means(sent, *self.given.data[client]))
            return reply

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            super().aggregate(trained, number)
            self.prototypes |= global_means(self.uploads, by_count=False)
            self.uploads = []

    return Reference
