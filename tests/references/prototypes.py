"""What the references of methods with class prototypes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Projected(nn.Module):
    """A network with two more layers behind its encoder, whose output is then z.

    The parts have the names under which ours keeps them.
    """

    def __init__(self, network: Any, start: Mapping[str, Tensor], frozen: bool) -> None:
        super().__init__()
        self.encoder, self.projector, self.classifier = network.encoder, network.projector, network.classifier
        layers = {
            name: start[f"model.prototype_projector.{name}"].clone() for name in ("W1", "b1", "W2", "b2")
        }
        self.prototype_projector = nn.ParameterDict(layers)
        self.encoder.requires_grad_(not frozen)

    def features(self, x: Tensor) -> Tensor:
        layers = self.prototype_projector
        hidden = F.relu(self.encoder(x) @ layers["W1"].T + layers["b1"])
        return hidden @ layers["W2"].T + layers["b2"]

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.projector(self.features(x)))
        return logits


def features(model: Any, x: Tensor) -> Tensor:
    """z, which prototypes are means of."""
    z: Tensor = model.features(x) if isinstance(model, Projected) else model.encoder(x)
    return z


def class_means(model: Any, x: Tensor, y: Tensor, normalised: bool = False) -> dict[int, tuple[Tensor, int]]:
    """Class → mean of the encoder's outputs and number of samples, for the classes that are there."""
    with torch.no_grad():
        z = features(model, x)
    means = {int(label): z[y == label].mean(dim=0) for label in y.unique()}
    if normalised:
        means = {label: F.normalize(mean, dim=0) for label, mean in means.items()}
    return {label: (mean, int((y == label).sum())) for label, mean in means.items()}


def global_means(
    uploads: list[dict[int, tuple[Tensor, int]]], by_count: bool, normalised: bool = False
) -> dict[int, Tensor]:
    """Class → mean over the clients that hold it, or weighted by their counts."""
    merged = {}
    for label in sorted({label for upload in uploads for label in upload}):
        held = [upload[label] for upload in uploads if label in upload]
        weights = [count if by_count else 1 for _, count in held]
        total = torch.stack([w * m for w, (m, _) in zip(weights, held, strict=True)]).sum(dim=0)
        mean = total / sum(weights)
        merged[label] = F.normalize(mean, dim=0) if normalised else mean
    return merged


def pull(z: Tensor, y: Tensor, prototypes: dict[int, Tensor], settings: Any) -> Tensor:
    """FedProto's term: per sample whose class has a prototype, a distance; the others count 0."""
    if settings.get("pull") == "prototypes":  # the means of the batch's classes instead of its samples
        labels = y.unique()
        z, y = torch.stack([z[y == label].mean(dim=0) for label in labels]), labels
    if settings["normalize_prototypes"]:
        z = F.normalize(z, dim=1)
    known = sorted(prototypes)
    terms = []
    for sample, label in zip(z, y.tolist(), strict=True):
        if label not in prototypes:
            terms.append(sample.sum() * 0)
        elif settings["distance"] == "euclidean":
            distance = (sample - prototypes[label]).square().mean()
            terms.append(distance if settings.get("squared", True) else distance.sqrt())
        else:
            cosines = torch.stack([F.cosine_similarity(sample, prototypes[c], dim=0) for c in known])
            logits = cosines / settings["temperature"]
            terms.append(-logits.log_softmax(0)[known.index(label)])
    return torch.stack(terms).mean()


def nearest(z: Tensor, prototypes: dict[int, Tensor], classes: int, settings: Any) -> Tensor:
    """Scores that are larger, the nearer a class's prototype is; classes without one never win."""
    if settings["normalize_prototypes"]:
        z = F.normalize(z, dim=1)
    scores = torch.full((len(z), classes), -torch.inf)
    for label, prototype in prototypes.items():
        if settings["distance"] == "cosine":
            scores[:, label] = F.cosine_similarity(z, prototype[None])
        else:
            scores[:, label] = -(z - prototype).square().sum(dim=1)
    return scores
