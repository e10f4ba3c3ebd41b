"""FedAdagrad: v ← v + Δ²."""

from torch import Tensor

from tests.references.server_optimisers import AdaptiveServer


class Reference(AdaptiveServer):
    def second_moment(self, squared: Tensor) -> Tensor:
        return self.v + squared
