"""FedAdam: v ← β₂ v + (1 − β₂) Δ²."""

from torch import Tensor

from tests.references.server_optimisers import AdaptiveServer


class Reference(AdaptiveServer):
    def second_moment(self, squared: Tensor) -> Tensor:
        return self.settings["beta2"] * self.v + (1 - self.settings["beta2"]) * squared
