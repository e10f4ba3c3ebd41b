"""Small files that are either there whole or not at all, and whether there can be any."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from bench.errors import UserError


def write_atomically(file: Path, content: str | bytes) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def write_json(file: Path, value: Any) -> None:
    write_atomically(file, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def check_writable(directory: Path) -> Path:
    """The part of the path that exists; a file can be written there, and none is left behind."""
    existing = next(folder for folder in (directory, *directory.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return existing
    except OSError as error:
        raise UserError(
            f"cannot write to {directory}: {error.strerror}; choose another folder with --out"
        ) from None
