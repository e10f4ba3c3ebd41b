"""DP-FedAvg: McMahan et al., ICLR 2018.

Updates are clipped to S and summed; the sum gets noise of standard deviation zS per number and is divided by
the planned m.
"""

from __future__ import annotations

from typing import Any

import torch

from tests.references.plain import Case, flat_parameters, set_parameters, trained_parameters


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (
            Case({"clip": 0.5, "noise_multiplier": 0.3}),
            Case({"clip": 50.0, "noise_multiplier": 0.001}),
            Case({"clip": 0.6, "noise_multiplier": 2.0}),  # in round 1, one of two updates is longer
        )

        def __init__(self, given: Any) -> None:
            self.privacy = given.settings
            super().__init__(given.inside())

        def aggregate(self, trained: dict[int, Any], number: int) -> None:
            clip, planned = self.privacy["clip"], len(self.given.rounds[number - 1])
            x = flat_parameters(self.model).detach()
            draw = self.given.generator("privacy noise", number - 1)
            drawn = [
                torch.randn(parameter.shape, generator=draw) for parameter in trained_parameters(self.model)
            ]
            total = self.privacy["noise_multiplier"] * clip * torch.cat([part.reshape(-1) for part in drawn])
            for model in trained.values():
                update = flat_parameters(model).detach() - x
                length = float(update.norm())
                total += update if length <= clip else update / length * clip
            set_parameters(self.model, x + total / planned)

    return Reference
