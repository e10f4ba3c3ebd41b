"""Checkpoints as folders that appear whole or not at all; what is in them is the engine's business.

A file of checksums says what the files and the rounds recorded before them held, so that one that was
damaged on the disk is passed over.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bench.records.checksums import digest_of, digest_of_file, is_broken, with_checksum
from bench.records.files import parse_json

KEPT = 2
_CHECKSUMS: Final = "seal.json"


def write_checkpoint(root: Path, number: int, fill: Callable[[Path], None]) -> None:
    """Let `fill` write into a folder that gets its name only when it is complete; keep the last few."""
    root.mkdir(parents=True, exist_ok=True)
    draft = root / f".draft-{number:06d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        fill(draft)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)  # what is half written may be what fills the disk
        raise
    final = root / f"round-{number:06d}"
    shutil.rmtree(final, ignore_errors=True)
    draft.replace(final)
    for old in _complete(root)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def latest_checkpoint(root: Path) -> tuple[int, Path] | None:
    """The number of rounds done and the folder of the newest checkpoint."""
    folders = _complete(root)
    return (int(folders[-1].name.removeprefix("round-")), folders[-1]) if folders else None


def add_checksums(folder: Path, rounds: bytes) -> None:
    """Write down what the files in the folder hold, and the rounds recorded so far."""
    files = {file.name: digest_of_file(file) for file in sorted(folder.iterdir())}
    content = {"files": files, "rounds": {"bytes": len(rounds), "sha256": digest_of(rounds)}}
    (folder / _CHECKSUMS).write_text(json.dumps(with_checksum(content)), encoding="utf-8")


class Saved(NamedTuple):
    """A checkpoint, and the record of the rounds before it."""

    number: int
    folder: Path
    rounds: bytes


def whole_checkpoint(root: Path, rounds: bytes) -> Saved | None:
    """The newest checkpoint that is as it was written, and whose rounds are among the recorded ones."""
    for folder in reversed(_complete(root)):
        if (before := _rounds_before(folder, rounds)) is not None:
            return Saved(int(folder.name.removeprefix("round-")), folder, before)
    return None


def _rounds_before(folder: Path, rounds: bytes) -> bytes | None:
    """Those that the checkpoint goes with; None if they or the checkpoint are damaged.

    All of them for a checkpoint without checksums, as older versions wrote it.
    """
    checksums = folder / _CHECKSUMS
    if not checksums.exists():
        return rounds
    try:
        content = parse_json(checksums.read_bytes())
        before = rounds[: content["rounds"]["bytes"]]
        whole = (
            not is_broken(content)
            and digest_of(before) == content["rounds"]["sha256"]
            and all(digest_of_file(folder / name) == digest for name, digest in content["files"].items())
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return before if whole else None


def _complete(root: Path) -> list[Path]:
    return sorted(root.glob("round-*"))
