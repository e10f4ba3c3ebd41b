"""A classifier trained on features that the server has drawn."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def train_classifier(
    classifier: nn.Module, z: Tensor, y: Tensor, settings: Any, draw: torch.Generator
) -> None:
    """Steps of Adam on mini-batches, with a new order whenever all features have been seen."""
    optimiser = torch.optim.Adam(classifier.parameters(), settings["server_lr"])
    waiting: list[Tensor] = []
    for _ in range(settings["server_steps"]):
        if not waiting:
            waiting = list(torch.randperm(len(y), generator=draw).split(settings["server_batch"]))
        chosen = waiting.pop(0)
        optimiser.zero_grad()
        F.cross_entropy(classifier(z[chosen]), y[chosen]).backward()
        optimiser.step()
