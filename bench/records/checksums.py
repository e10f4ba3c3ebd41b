"""Digests inside records, by which a later reader notices bytes that were damaged on the disk.

They are no proof of who wrote a record: whoever edits one can compute its checksum again, or remove it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

CHECKSUM: Final = "seal"
"""The key of the digest; records of older versions have none."""


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of_file(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a digest of itself."""
    return {**content, CHECKSUM: _checksum(content)}


def is_broken(content: Mapping[str, Any]) -> bool:
    """Whether there is a checksum, and it belongs to other content."""
    return CHECKSUM in content and content[CHECKSUM] != _checksum(content)


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    return digest_of(json.dumps(rest, sort_keys=True).encode())[:16]
