"""A file system of a few megabytes that can be filled up."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

MEGABYTES = 24


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, free: int = 0) -> None:
        """Leave only so many bytes, rounded up to whole pages."""
        with self._ballast.open("ab") as stream, contextlib.suppress(OSError):
            while (left := self.free) > free:
                stream.write(bytes(min(left - free, 65_536)))
                stream.flush()

    def clear(self) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)

    @property
    def free(self) -> int:
        about = os.statvfs(self.path)
        return about.f_bavail * about.f_frsize


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Mounted at this path; the test is skipped where the user may not mount."""
    path.mkdir()
    options = f"size={MEGABYTES}m"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], capture_output=True)
    if mounted.returncode:
        pytest.skip("the user may not mount a small disk; try `unshare -rm make test-faults`")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
