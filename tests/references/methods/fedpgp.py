"""FedPGP: Cui et al., ICML 2024.

A client's own words are P + U V. CE of the logits with T(P + UV), and μ times the mean over the classes of
−log( e^{⟨T(P), T₀⟩/τ} / (e^{⟨T(P), T₀⟩/τ} + e^{⟨T(P), T(P + UV)⟩/τ}) ), T₀ from a written prompt. P
travels; U and V stay.
"""

from __future__ import annotations

import copy
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tests.references.plain import Case, FedAvg

FASTER = {"name": "sgd", "lr": 0.3, "momentum": 0.5}


class Reference(FedAvg):
    cases = (
        Case({"optimiser": FASTER, "rank": 2}, model="context"),
        Case({"optimiser": FASTER, "rank": 1, "mu": 0.5, "temperature": 0.2}, model="context"),
    )

    def start(self) -> None:
        self.own = {
            client: [self.given.client_start[f"factors.own_{shape}"].clone() for shape in ("tall", "wide")]
            for client in self.given.data
        }

    def client_round(self, client: int, number: int) -> Any:
        model = copy.deepcopy(self.model)
        classifier = model.classifier
        tall, wide = (factor.requires_grad_() for factor in self.own[client])
        words, tau = classifier.generator.words, self.settings["temperature"]
        optimiser = self.given.optimiser([words, tall, wide])
        for x, y in self.given.batches(client, number):
            shared, own = classifier.texts(words), classifier.texts(words + tall @ wide)
            near = ((shared * classifier.written).sum(dim=1) / tau).exp()
            far = ((shared * own).sum(dim=1) / tau).exp()
            contrast = -(near / (near + far)).log().mean()
            plain = F.cross_entropy(classifier.logits(x, own), y)
            self.given.step(optimiser, plain + self.settings["mu"] * contrast)
        self.own[client] = [tall.detach(), wide.detach()]
        return model

    def predict_as(self, client: int, x: Tensor) -> Tensor:
        tall, wide = self.own[client]
        classifier = self.model.classifier
        return classifier.logits(x, classifier.texts(classifier.generator.words + tall @ wide)).detach()

    def private_state(self, client: int) -> dict[str, Tensor]:
        return dict(zip(("factors.own_tall", "factors.own_wide"), self.own[client], strict=True))
