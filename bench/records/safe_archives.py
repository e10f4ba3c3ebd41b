"""Compressed files that anybody may have made: refused where a small one would fill the memory."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final, Protocol

from bench.errors import UserError

RATIO: Final = 200
"""Bytes unpacked per byte of the file: about 1 of pictures, 10 of texts, 100 of sparse arrays; up to 1032."""
ALWAYS: Final = 100 * 2**20
"""Bytes that any file may unpack to."""


def refuse_zip_bomb(file: Path) -> None:
    """A UserError if the members of a zip archive, such as an .npz file, are far larger than the archive."""
    with zipfile.ZipFile(file) as archive:
        refuse_bomb(file, sum(member.file_size for member in archive.infolist()))


def refuse_bomb(file: Path, unpacked: int) -> None:
    """A UserError if this many bytes are more than such a file should hold."""
    if unpacked > _allowed(file):
        raise UserError(
            f"{file} unpacks to more than {RATIO} times its size, as files do that are made to fill the "
            "memory; get it from its official site"
        )


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def unpacked(stream: Stream, file: Path) -> bytes:
    """All that a compressed stream gives; a UserError if it is far more than its file."""
    data = stream.read(_allowed(file) + 1)
    refuse_bomb(file, len(data))
    return data


def _allowed(file: Path) -> int:
    return max(ALWAYS, RATIO * file.stat().st_size)
