"""Compressed updates: top-k with error feedback (Stich et al., 2018) or QSGD (Alistarh et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case, flat_parameters, set_parameters


def around(inner: Any) -> Any:
    optimiser = inner.cases[0].optimiser

    class Reference(inner):  # type: ignore[misc]
        cases = (
            Case({"share": 0.15}, optimiser=optimiser),
            Case({"kind": "qsgd", "levels": 3, "bucket": 100}, optimiser=optimiser),
        )

        def __init__(self, given: Any) -> None:
            self.compression = given.settings
            self.kept: dict[int, Tensor] = {}
            super().__init__(given.inside())

        def client_round(self, client: int, number: int) -> Any:
            x = flat_parameters(self.model).detach()
            reply = super().client_round(client, number)
            if isinstance(reply, tuple):  # an update, and something else
                return self.sent(reply[0], client, number), *reply[1:]
            set_parameters(reply, x + self.sent(flat_parameters(reply).detach() - x, client, number))
            return reply

        def sent(self, update: Tensor, client: int, number: int) -> Tensor:
            """What the server makes of the update."""
            if self.compression["kind"] == "qsgd":
                return self.quantised(update, client, number)
            update = update + self.kept.get(client, torch.zeros_like(update))
            count = math.ceil(self.compression["share"] * len(update))
            places = update.abs().argsort(descending=True)[:count]
            largest = torch.zeros_like(update)
            largest[places] = update[places]
            self.kept[client] = update - largest
            return largest

        def quantised(self, update: Tensor, client: int, number: int) -> Tensor:
            levels = self.compression["levels"]
            chances = self.given.noise(client, number, 0, "uniform", (len(update),), stream=1000)
            decoded = []
            size = self.compression["bucket"]
            for part, chance in zip(update.split(size), chances.split(size), strict=True):
                level = (levels * part.abs() / part.norm() + chance).floor()
                decoded.append(part.norm() * part.sign() * level / levels)
            return torch.cat(decoded)

    return Reference
