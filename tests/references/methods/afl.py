"""AFL: He et al., CVPR 2025: least squares of one-hot labels on all samples at once, here by numpy.

With the ridge left in, it is ridge regression with λ = Kγ: least squares on samples extended by √(Kγ)·I.
Nothing happens in the rounds.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"gamma": 3.0}, model="head", tolerance=1e-8),
        Case({"gamma": 0.5, "keep_ridge": True, "bias": True}, model="head"),
    )

    def start(self) -> None:
        rows = np.vstack([self.features(x) for x, _ in self.given.data.values()])
        targets = np.vstack([np.eye(self.given.classes)[y.numpy()] for _, y in self.given.data.values()])
        if self.settings["keep_ridge"]:
            width = rows.shape[1]
            rows = np.vstack([rows, np.sqrt(self.given.clients * self.settings["gamma"]) * np.eye(width)])
            targets = np.vstack([targets, np.zeros((width, self.given.classes))])
        self.w = np.linalg.lstsq(rows, targets, rcond=None)[0]

    def features(self, x: Tensor) -> np.ndarray:
        z = x.numpy().astype(np.float64)
        return np.hstack([z, np.ones((len(z), 1))]) if self.settings["bias"] else z

    def server_round(self, number: int) -> None:
        pass

    def global_model(self) -> None:
        return None

    def predict(self, x: Tensor) -> Tensor:
        return torch.from_numpy(self.features(x) @ self.w)

    def server_state(self) -> dict[str, Tensor]:
        return {"weights": torch.from_numpy(self.w)}
