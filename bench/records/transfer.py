"""What a cell leaves behind, on its way from the process that computes it to the driver, who writes it.

A process works in a scratch folder. What is new there goes to the driver in a `FileUpdate`, and the driver
puts it into the cell's folder; a process that resumes a cell gets an update with what is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.config.cell import CellConfig
from bench.records.cell_folder import CellFolder
from bench.records.checkpoints import latest_checkpoint, whole_checkpoint, write_checkpoint
from bench.records.files import replacing, write_atomically

Content = bytes | Path
"""The bytes of a file, or its path on a disk that sender and writer share; it is moved from there."""

CONFIG, ERROR, RESULT, ROUNDS, CHECKPOINT = (
    "config.json",
    "error.json",
    "result.json",
    "rounds.jsonl",
    "checkpoint",
)
_TAKEN = ".taken-"


@dataclass(frozen=True)
class FileUpdate:
    """News of one cell."""

    first: bool = False
    """Whether it is the first of a process, which replaces the rounds and ends an earlier failure."""
    offset: int = 0
    """Where in rounds.jsonl the lines belong."""
    rounds: bytes = b""
    checkpoint: tuple[int, Mapping[str, Content]] | None = None
    """The number of rounds done, and the files."""
    files: Mapping[str, Content] = field(default_factory=dict)
    """Predictions, projection and model, by their path below the cell's folder."""
    error: bytes | None = None
    result: bytes | None = None

    def __bool__(self) -> bool:
        """Whether there is anything in it; the first of a process says that it has begun."""
        return any((self.first, self.rounds, self.checkpoint, self.files, self.error, self.result))

    def deliver(self, folder: CellFolder, config: CellConfig | None) -> None:
        """Put everything in its place; the result comes last, as its presence means done.

        The first update of a process comes with the configuration.
        """
        if config is not None:
            folder.open(config)
        folder.path.mkdir(parents=True, exist_ok=True)
        if self.first:
            folder.forget_failure()
        self._write_rounds(folder.rounds_file)
        if self.checkpoint is not None:
            number, files = self.checkpoint
            write_checkpoint(folder.checkpoints, number, partial(_place, files))
        _place(self.files, folder.path)
        if self.error is not None:
            write_atomically(folder.path / ERROR, self.error)
        if self.result is not None:
            write_atomically(folder.path / RESULT, self.result)
            folder.forget_failure()
            folder.remove_checkpoints()

    def _write_rounds(self, file: Path) -> None:
        if self.first:
            with replacing(file) as draft:
                draft.write_bytes(self.rounds)
        elif self.rounds:
            with file.open("r+b") as stream:
                stream.seek(self.offset)
                stream.write(self.rounds)
                stream.truncate()


def contents(folder: CellFolder) -> FileUpdate:
    """What a process needs in order to resume the cell, or to see that it is done."""
    rounds, result = _bytes(folder.rounds_file) or b"", _bytes(folder.path / RESULT)
    if result is not None:
        return FileUpdate(first=True, rounds=rounds, result=result)
    saved = whole_checkpoint(folder.checkpoints, rounds)
    return FileUpdate(
        first=True,
        rounds=saved.rounds if saved else b"",
        checkpoint=saved
        and (saved.number, {file.name: file.read_bytes() for file in saved.folder.iterdir()}),
    )


class FileUpdates:
    """Packs what is new in a scratch folder, which thereby loses all that is large."""

    def __init__(self, folder: CellFolder, by_path: bool) -> None:
        self.folder, self._by_path = folder, by_path
        self._first, self._packed = True, 0
        self._endings: dict[str, bytes | None] = {}

    def pack(self) -> FileUpdate:
        folder = self.folder
        lines = self._new_lines()
        update = FileUpdate(
            first=self._first,
            offset=self._packed,
            rounds=lines,
            checkpoint=self._checkpoint(),
            files={str(file.relative_to(folder.path)): self._taken(file) for file in self._others()},
            error=self._ending(ERROR),
            result=self._ending(RESULT),
        )
        self._first, self._packed = False, self._packed + len(lines)
        return update

    def _ending(self, name: str) -> bytes | None:
        """The content of such a file, if it is updates; it stays, as the process may look at it."""
        content = _bytes(self.folder.path / name)
        known = self._endings.get(name)
        self._endings[name] = content
        return None if content == known else content

    def _new_lines(self) -> bytes:
        if not self.folder.rounds_file.is_file():
            return b""
        with self.folder.rounds_file.open("rb") as stream:
            stream.seek(self._packed)
            return stream.read()

    def _checkpoint(self) -> tuple[int, Mapping[str, Content]] | None:
        for emptied in self.folder.path.glob(f"{_TAKEN}*"):
            shutil.rmtree(emptied)
        saved = latest_checkpoint(self.folder.checkpoints)
        if saved is None:
            return None
        number, place = saved
        if self._by_path:
            # Out of the way of the next checkpoint, which counts and removes those before it.
            place = place.replace(self.folder.path / f"{_TAKEN}{number}")
        packed = {file.name: self._taken(file) for file in place.iterdir()}
        shutil.rmtree(self.folder.checkpoints)
        return number, packed

    def _others(self) -> list[Path]:
        known = {CONFIG, ERROR, RESULT, ROUNDS, CHECKPOINT}
        return [
            file
            for file in sorted(self.folder.path.rglob("*"))
            if file.is_file()
            and file.relative_to(self.folder.path).parts[0] not in known
            and not any(part.startswith(".") for part in file.relative_to(self.folder.path).parts)
        ]

    def _taken(self, file: Path) -> Content:
        if self._by_path:
            return file
        content = file.read_bytes()
        file.unlink()
        return content


def _place(files: Mapping[str, Content], folder: Path) -> None:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as draft:
            if isinstance(content, Path):
                content.replace(draft)
            else:
                draft.write_bytes(content)


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
