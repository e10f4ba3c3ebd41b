"""FedProto with averaged weights: Tan et al., AAAI 2022, Eq. 3-8, where weights travel too.

CE + λ · mean_i ‖z_i − P_{y_i}‖² / D, where samples whose class has no global prototype count 0. Prototypes
are class means of z under the final local model; the server averages them over the clients that hold the
class, and a class that none of the round's clients holds keeps its prototype.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg
from tests.references.prototypes import Projected, class_means, features, global_means, pull


class Reference(FedAvg):
    cases = (
        Case(),
        Case({"prototype_weighting": "weighted_mean", "distance": "cosine", "lam": 0.7}),
        Case({"normalize_prototypes": True}, optimiser="adam"),
        Case({"momentum": 0.3, "hierarchical": True}, domains=(0, 1, 1, 2)),
        Case({"projector": 5, "lam": 3.0}),
        Case({"projector": 5, "freeze_backbone": True, "lam": 3.0}, optimiser="adam"),
    )

    def network(self, start: Mapping[str, Tensor]) -> Any:
        """The network that clients train, with the projector's first weights from what they start from."""
        plain = self.given.network()
        if self.settings.get("projector") is None:
            return plain
        return Projected(plain, start, self.settings.get("freeze_backbone", False))

    def start(self) -> None:
        self.model = self.network(self.given.server_start)
        self.prototypes: dict[int, Tensor] = {}
        self.uploads: list[dict[int, tuple[Tensor, int]]] = []

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = features(model, x)
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
        uploads = self.uploads
        if self.settings.get("hierarchical"):
            domains = [self.given.domains[client] for client in trained]
            groups = [[u for u, d in zip(uploads, domains, strict=True) if d == one] for one in set(domains)]
            within = [global_means(group, by_count) for group in groups]
            uploads = [{label: (mean, 1) for label, mean in means.items()} for means in within]
        fresh = global_means(uploads, by_count, self.settings["normalize_prototypes"])
        kept = self.settings.get("momentum", 0.0)
        for label, mean in fresh.items():
            old = self.prototypes.get(label, mean)
            self.prototypes[label] = kept * old + (1 - kept) * mean
        self.uploads = []

    def server_state(self) -> dict[str, Tensor]:
        width = len(next(iter(self.prototypes.values())))
        full = self.prototypes[0].new_zeros(self.given.classes, width)
        for label, prototype in self.prototypes.items():
            full[label] = prototype
        return {"prototypes": full}
