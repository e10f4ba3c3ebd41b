"""FedRDN: Yan et al., CVPR 2025: every training image is standardised with the statistics of a random client.

Per channel, μ_k is the mean over the client's images of the image's mean, σ_k that of its standard
deviation. A client predicts with its own, the global model with the means over the clients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.references.plain import Case


def around(inner: Any) -> Any:
    class Reference(inner):  # type: ignore[misc]
        cases = (Case(model="pictures", optimiser=inner.cases[0].optimiser),)

        def __init__(self, given: Any) -> None:
            images = [x for x, _ in given.data.values()]
            self.means = torch.stack([x.mean(dim=(2, 3)).mean(dim=0) for x in images])
            self.stds = torch.stack([x.flatten(2).std(dim=2).mean(dim=0) for x in images])
            super().__init__(given.inside())

        def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
            chances = self.given.noise(client, number, step, "uniform", (len(y),), stream=1009)
            whose = (chances * self.given.clients).long()
            x = (x - self.means[whose][:, :, None, None]) / self.stds[whose][:, :, None, None]
            return super().loss(model, x, y, client, number, step)

        def predict(self, x: Tensor) -> Tensor:
            return self.seen(x, self.means.mean(dim=0), self.stds.mean(dim=0))

        def predict_as(self, client: int, x: Tensor) -> Tensor:
            return self.seen(x, self.means[client], self.stds[client])

        def seen(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return super().predict((x - mean[:, None, None]) / std[:, None, None])

    return Reference
