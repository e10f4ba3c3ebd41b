"""FedProto with averaged weights: Tan et al., AAAI 2022, Eq. 3-8, where weights travel too.

CE + λ · mean_i ‖z_i − P_{y_i}‖² / D, where samples whose class has no global prototype count 0. Prototypes
are class means of z under the final local model; the server averages them over the clients that hold the
class, and a class that none of the round's clients holds keeps its prototype.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg
from tests.references.prototypes import class_means, global_means, pull


class Reference(FedAvg):
    cases = (
        Case(),
        Case({"prototype_weighting": "weighted_mean", "distance": "cosine", "lam": 0.7}),
        Case({"normalize_prototypes": True}, optimiser="adam"),
    )

    def start(self) -> None:
        self.prototypes: dict[int, Tensor] = {}
        self.uploads: list[dict[int, tuple[Tensor, int]]] = []

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.encoder(x)
        plain = F.cross_entropy(model.classifier(model.projector(z)), y)
        if not self.prototypes:
            return plain
        return plain + self.settings["lam"] * pull(z, y, self.prototypes, self.settings)

    def client_round(self, client: int, number: int) -> Any:
        model = super().client_round(client, number)
        normalised = self.settings["normalize_prototypes"]
        self.uploads.append(class_means(model, *self.given.data[client], normalised=normalised))
        return model

    def aggregate(self, trained: dict[int, Any], number: int) -> None:
        super().aggregate(trained, number)
        by_count = self.settings["prototype_weighting"] == "weighted_mean"
        self.prototypes |= global_means(self.uploads, by_count, self.settings["normalize_prototypes"])
        self.uploads = []

    def server_state(self) -> dict[str, Tensor]:
        width = len(next(iter(self.prototypes.values())))
        full = self.prototypes[0].new_zeros(self.given.classes, width)
        for label, prototype in self.prototypes.items():
            full[label] = prototype
        return {"prototypes": full}
