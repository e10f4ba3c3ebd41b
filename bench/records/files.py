"""Files that are either there whole or not at all, and JSON in them."""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from bench.errors import UserError

DEEPEST: Final = 40
"""Objects and lists inside each other."""
LARGEST: Final = 2**63
_SUSPECT = re.compile(rb"\\u[dD][89a-fA-F]|[0-9]{19}")
"""What half a character, or a number that is too large, looks like."""


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A temporary name beside `file`; what is written there takes its place when the block ends well."""
    # not the process's number, which another machine on the same disk may use too
    draft = file.with_name(f".{file.name}.{secrets.token_hex(6)}.draft")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        draft.replace(file)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}; choose another folder with --out") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write the file so that a kill or a full disk leaves the old one."""
    with replacing(file) as draft, draft.open("wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
        stream.flush()
        os.fsync(stream.fileno())


def as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(file: Path, value: Any) -> None:
    write_atomically(file, as_json(value))


def parse_json(data: bytes) -> Any:
    """JSON that anybody may have written.

    A ValueError if it is not JSON, and for what would break those who work with it later: nesting without
    end, halves of characters, whole numbers that no float holds.
    """
    try:
        content = json.loads(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Looked at closely only if there is a reason, since a run may have a hundred thousand lines.
    if data.count(b"[") + data.count(b"{") > DEEPEST or _SUSPECT.search(data):
        _refuse_unsafe(content)
    return content


def _refuse_unsafe(value: Any, depth: int = 0) -> None:
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_unsafe(key)
            _refuse_unsafe(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _refuse_unsafe(item, depth + 1)
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("a number in it is too large")
    elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a text in it holds half a character")


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file; a UserError says which file is damaged."""
    try:
        content = parse_json(file.read_bytes())
    except OSError as error:
        raise UserError(
            f"cannot read {file}: {error.strerror}; mend that and run the command again"
        ) from None
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error}); delete it and run the command again") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} does not hold a JSON object; delete it and run the command again")
    return content


def whole_lines(file: Path) -> list[bytes]:
    """The lines of a file that are complete; a kill can leave half a line at its end."""
    if not file.is_file():
        return []
    return [line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def inside(folder: Path, name: str) -> Path:
    """A folder inside another; a UserError if it is a link, as somebody else's run may have one."""
    place = folder / name
    if place.is_symlink():
        raise UserError(f"{place} is a link to {place.readlink()}; remove it, and nothing is written there")
    return place


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
