"""FedSR: Nguyen, Torr and Lim, NeurIPS 2022.

z ~ N(μ(x), σ(x)), μ the projector's output, σ = softplus of a layer beside it. CE(classifier(z), y) + α_L2R
‖z‖² + α_CMI KL(N(Cμ, |C|σ) ‖ N(r_y, s_y)); the probabilities of several draws are averaged.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.references.plain import Case, FedAvg


class Latent(nn.Module):
    """σ's layer, and r, s and C; s stands for softplus(s)."""

    def __init__(self, start: Any) -> None:
        super().__init__()
        weight, bias = start["model.latent.sigma.weight"], start["model.latent.sigma.bias"]
        self.sigma = nn.Linear(weight.shape[1], weight.shape[0])
        self.sigma.load_state_dict({"weight": weight, "bias": bias})
        for name in ("r", "s", "C"):
            setattr(self, name, nn.Parameter(start[f"model.latent.{name}"].clone()))


class Reference(FedAvg):
    cases = (Case({"l2r": 0.05, "cmi": 0.1, "draws": 3}), Case({"weighting": "uniform"}, optimiser="adam"))

    def start(self) -> None:
        self.model.latent = Latent(self.given.server_start)

    def distribution(self, model: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        features = model.encoder(x)
        return model.projector(features), F.softplus(model.latent.sigma(features)).clamp(min=1e-6)

    def loss(self, model: Any, x: Tensor, y: Tensor, client: int, number: int, step: int) -> Tensor:
        mu, sigma = self.distribution(model, x)
        z = mu + sigma * self.given.noise(client, number, step, "normal", mu.shape)
        c, r, s = model.latent.C, model.latent.r[y], F.softplus(model.latent.s)[y]
        one, other = torch.distributions.Normal(c * mu, c.abs() * sigma), torch.distributions.Normal(r, s)
        divergence = torch.distributions.kl_divergence(one, other).sum(dim=1).mean()
        length = z.square().sum(dim=1).mean()
        plain = F.cross_entropy(model.classifier(z), y)
        return plain + self.settings["l2r"] * length + self.settings["cmi"] * divergence

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            mu, sigma = self.distribution(self.model, x)
            draw = self.given.generator("latent draws")
            noise = torch.randn(self.settings["draws"], 1, mu.shape[1], generator=draw)
            return self.model.classifier(mu + sigma * noise).softmax(dim=2).mean(dim=0).log()
