"""FedHEAL: Chen, Huang and Ye, CVPR 2024.

Client: entries of its change whose direction was rare in its earlier rounds are set back. Server: clients
whose change is long get larger weights; entry by entry, the mean is over the clients that changed it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, flat_parameters, set_parameters, trained_parameters


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (Case({"threshold": 0.4, "beta": 0.5}), Case({"threshold": 0.6}, participation=1.0))

        def __init__(self, given: Any) -> None:
            self.heal = given.settings
            self.ups: dict[int, list[Tensor]] = {}
            """Client → per earlier round, where x − y ≥ 0."""
            self.p: dict[int, float] = {}
            self.delta: dict[int, float] = {}
            super().__init__(given.inside())

        def client_round(self, client: int, number: int) -> Any:
            x = flat_parameters(self.model).detach()
            model = super().client_round(client, number)
            y = flat_parameters(model).detach()
            up = x - y >= 0
            if client in self.ups:
                share = torch.stack(self.ups[client]).to(x).mean(dim=0)
                consistent = torch.where(up, share, 1 - share) > self.heal["threshold"]
                set_parameters(model, torch.where(consistent, y, x))
            self.ups.setdefault(client, []).append(up)
            return model

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            x = flat_parameters(self.model).detach()
            sizes = [parameter.numel() for parameter in trained_parameters(self.model)]
            changes = {client: x - flat_parameters(model).detach() for client, model in trained.items()}
            lengths = {k: sum(float(part.norm()) for part in c.split(sizes)) for k, c in changes.items()}
            for client, length in lengths.items():
                before = self.delta.get(client, 0.0)
                moved = (1 - self.heal["beta"]) * before + self.heal["beta"] * length / sum(lengths.values())
                self.delta[client] = moved
                self.p[client] = self.p.get(client, 1 / len(trained)) + moved
            total, weight = torch.zeros_like(x), torch.zeros_like(x)
            for client, change in changes.items():
                share = self.p[client] / sum(self.p[k] for k in trained)
                total = total + share * change
                weight = weight + share * (change != 0)
            set_parameters(self.model, x - torch.where(weight > 0, total / weight.clamp(min=1e-300), 0.0))

    return Reference
