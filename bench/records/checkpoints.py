"""Checkpoints as folders that appear whole or not at all; what is in them is the engine's business."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

KEPT = 2


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
