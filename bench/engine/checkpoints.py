"""State on disk: plain tensors, loaded without executing code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from methods.core.tree import Tree

_TREE = "__tree__"


def save_state(state: Any, file: Path) -> None:
    torch.save(_plain(state), file)


def load_state(file: Path, device: torch.device | str = "cpu") -> Any:
    return _restored(torch.load(file, map_location=device, weights_only=True))


def _plain(value: Any) -> Any:
    if isinstance(value, Tree):
        return {_TREE: _plain(value.as_dict())}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() > value.nbytes:
        return value.clone()  # a part of something larger, all of which would be saved
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if _TREE in value:
        return Tree(value[_TREE])
    return {key: _restored(item) for key, item in value.items()}
