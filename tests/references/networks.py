"""The networks of the comparison: ours in the parts that methods call, and the same in plain PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from methods.modules.split_model import SplitModel
from tests.references import clip, lora
from tests.references.data import CLASSES, clients


class Plain(nn.Module):
    """The three parts, one after the other."""

    def __init__(self, encoder: nn.Module, projector: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.encoder, self.projector, self.classifier = encoder, projector, classifier

    def embed(self, x: Tensor) -> Tensor:
        """What the classifier works on."""
        embedding: Tensor = self.projector(self.encoder(x))
        return embedding

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.embed(x))
        return logits


def perceptron() -> tuple[nn.Module, nn.Module, nn.Module]:
    encoder = nn.Sequential(OrderedDict(hidden=nn.Linear(64, 10), bend=nn.Tanh()))
    return encoder, nn.Linear(10, 6), nn.Linear(6, CLASSES)


def with_batch_norm() -> tuple[nn.Module, nn.Module, nn.Module]:
    encoder = nn.Sequential(nn.Linear(64, 10), nn.BatchNorm1d(10), nn.ReLU())
    return encoder, nn.Identity(), nn.Linear(10, CLASSES)


def linear() -> tuple[nn.Module, nn.Module, nn.Module]:
    return nn.Identity(), nn.Identity(), nn.Linear(16, CLASSES)


def convolutions() -> tuple[nn.Module, nn.Module, nn.Module]:
    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(48, 7), nn.ReLU(),
    )  # fmt: skip
    return encoder, nn.Linear(7, 5), nn.Linear(5, CLASSES)


def on_pictures() -> tuple[nn.Module, nn.Module, nn.Module]:
    encoder = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(36, 7), nn.Tanh()
    )
    return encoder, nn.Identity(), nn.Linear(7, CLASSES)


def seeded(build: Callable[[], Any]) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return build()


@dataclass(frozen=True)
class Network:
    """One network in two forms."""

    ours: Callable[[], SplitModel]
    """As methods get it, with the initial weights."""
    plain: Callable[[], nn.Module]
    """As references get it; ours gives the initial weights."""
    inputs: str
    """The shape of the samples: rows, vectors or pictures."""


def alike(parts: Callable[[], tuple[nn.Module, ...]], inputs: str = "rows") -> Network:
    """A network that has the same parts in both forms."""

    def ours() -> SplitModel:
        encoder, projector, classifier = seeded(parts)
        z = encoder(clients(inputs)[0][0].to(torch.get_default_dtype()))
        sizes = {"feature_size": z.shape[1], "embedding_size": projector(z).shape[1]}
        return SplitModel(encoder, projector, classifier, **sizes)

    return Network(ours, lambda: Plain(*parts()), inputs)


NETWORKS = {
    "mlp": alike(perceptron),
    "norm": alike(with_batch_norm),
    "cnn": alike(convolutions),
    "head": alike(linear, "vectors"),
    "pictures": alike(on_pictures, "pictures"),
    "adapter": Network(lambda: clip.our_adapter(), lambda: clip.plain_adapter(), "vectors"),
    "prompts": Network(lambda: clip.our_prompts(), lambda: clip.plain_prompts(), "vectors"),
    "context": Network(lambda: clip.our_context(), lambda: clip.plain_context(), "vectors"),
    "vit": Network(lambda: lora.our_transformer(), lambda: lora.plain_transformer(), "pictures"),
}
