"""FedRCL: Seo et al., CVPR 2024: cross-entropy, supervised contrast, penalty on pairs that are too similar.

Written pair by pair: SCL_i = mean_{j∈P_i} −log(e^{s_ij/τ} / Σ_{k≠i} e^{s_ik/τ}), and the penalty
−log(e^{1/τ} / (e^{1/τ} + Σ_{j∈P_i, s_ij>λ} e^{s_ij/τ})); the mean over the encoder's and the projector's
output.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case({"mu": 0.5, "beta": 2.0, "threshold": 0.3, "temperature": 0.4}),
        Case({"threshold": 0.6}, model="cnn", optimiser="adam"),
        Case({"beta": 0.0, "temperature": 0.2}, model="norm", optimiser="plain", batch_size=6),
    )

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        z = model.encoder(x)
        embedding = model.projector(z)
        contrast = (self.contrast(z, y) + self.contrast(embedding, y)) / 2
        return F.cross_entropy(model.classifier(embedding), y) + self.settings["mu"] * contrast

    def contrast(self, z: Tensor, y: Tensor) -> Tensor:
        tau, total = self.settings["temperature"], torch.zeros(())
        for i in range(len(y)):
            s = {j: F.cosine_similarity(z[i], z[j], dim=0) for j in range(len(y)) if j != i}
            same = [j for j in s if y[j] == y[i]]
            if not same:
                continue
            everyone = sum((value / tau).exp() for value in s.values())
            pull = sum(-((s[j] / tau).exp() / everyone).log() for j in same) / len(same)
            crowd = [(s[j] / tau).exp() for j in same if s[j] > self.settings["threshold"]]
            itself = torch.tensor(1 / tau).exp()
            push = -(itself / (itself + sum(crowd))).log()
            total = total + pull + self.settings["beta"] * push
        return total / len(y)
