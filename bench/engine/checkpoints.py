"""State on disk: plain tensors, loaded without executing code, in folders that appear whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from methods.core.tree import Tree

KEPT = 2
_TREE = "__tree__"


def save_state(state: Any, file: Path) -> None:
    torch.save(_plain(state), file)


def load_state(file: Path, device: torch.device | str = "cpu") -> Any:
    return _restored(torch.load(file, map_location=device, weights_only=True))


def write_checkpoint(root: Path, number: int, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into a folder that gets its name only when it is complete; keep the last few."""
    root.mkdir(parents=True, exist_ok=True)
    draft = root / f".draft-{number:06d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    fill(draft)
    final = root / f"round-{number:06d}"
    shutil.rmtree(final, ignore_errors=True)
    draft.replace(final)
    for old in _complete(root)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def latest_checkpoint(root: Path) -> tuple[int, Path] | None:
    """The number of rounds done and the folder of the newest checkpoint."""
    folders = _complete(root)
    return (int(folders[-1].name.removeprefix("round-")), folders[-1]) if folders else None


def _complete(root: Path) -> list[Path]:
    return sorted(root.glob("round-*"))


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
