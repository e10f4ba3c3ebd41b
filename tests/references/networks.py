"""The data and networks of the comparison: ours in the parts that methods call, and the same in plain PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from methods.modules.split_model import SplitModel

CLASSES = 4
LABELS = {
    0: [0, 0, 0, 2, 2, 3, 2, 0, 2],
    1: [0, 1, 1, 1, 2, 3, 3, 1, 1, 0, 2, 2, 3, 1],
    2: [2, 2, 1, 2, 1, 2],
    3: [3, 3, 2, 2, 3, 2, 2, 3, 3, 2, 3],
}
"""Client → labels of its samples. Batches of five leave last batches of one sample, client 0 has a class of one
sample, and with half of the clients per round there is a round that lacks a class which the one before had."""
HELD_OUT = {0: [0, 2, 3], 1: [0, 1, 2, 3, 1], 2: [1, 2, 2], 3: [2, 3, 3, 3]}
TESTED = [0, 1, 2, 3] * 4


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Scikit-learn's digits of the first classes: 8 × 8 pixels from −1 to 1."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    chosen = y < CLASSES
    return torch.tensor(x[chosen]).double() / 8 - 1, torch.tensor(y[chosen])


@cache
def _drawn() -> list[dict[int, tuple[Tensor, Tensor]]]:
    """Training, held-out and test samples with the labels above, no image twice."""
    x, y = digits()
    left = {label: iter(x[y == label]) for label in range(CLASSES)}
    return [
        {
            client: (torch.stack([next(left[label]) for label in labels]), torch.tensor(labels))
            for client, labels in part.items()
        }
        for part in (LABELS, HELD_OUT, {0: TESTED})
    ]


def shaped(x: Tensor, shape: str) -> Tensor:
    if shape == "vectors":  # the means of 2 × 2 pixels
        return nn.functional.avg_pool2d(x.view(-1, 1, 8, 8), 2).flatten(1)
    return x.view(-1, 1, 8, 8).expand(-1, 3, 8, 8).contiguous() if shape == "pictures" else x


def clients(shape: str) -> dict[int, tuple[Tensor, Tensor]]:
    return {client: (shaped(x, shape), y) for client, (x, y) in _drawn()[0].items()}


def validation(shape: str) -> dict[int, tuple[Tensor, Tensor]]:
    return {client: (shaped(x, shape), y) for client, (x, y) in _drawn()[1].items()}


def test_samples(shape: str) -> tuple[Tensor, Tensor]:
    x, y = _drawn()[2][0]
    return shaped(x, shape), y


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


def seeded(build: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return build()


def ours(parts: Any) -> Any:
    def build() -> SplitModel:
        encoder, projector, classifier = seeded(parts)
        z = encoder(torch.zeros(2, INPUTS[parts]))
        sizes = {"feature_size": z.shape[1], "embedding_size": projector(z).shape[1]}
        return SplitModel(encoder, projector, classifier, **sizes).double()

    return build


def plain(parts: Any) -> Any:
    return lambda: Plain(*parts()).double()


INPUTS = {perceptron: 64, with_batch_norm: 64, linear: 16, convolutions: 64}
NETWORKS = {
    "mlp": (ours(perceptron), plain(perceptron), "rows"),
    "norm": (ours(with_batch_norm), plain(with_batch_norm), "rows"),
    "head": (ours(linear), plain(linear), "vectors"),
    "cnn": (ours(convolutions), plain(convolutions), "rows"),
}
