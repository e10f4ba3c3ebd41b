"""One driver per folder: a second one would train the same cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bench.errors import UserError


@contextmanager
def alone(directory: Path, command: str) -> Iterator[None]:
    """Hold the folder for this process; a UserError if another one has it."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory.parent / f".{directory.name}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(
            f"another `{command}` is running in {directory}; wait for it or choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()
