"""One driver per folder, or per part of it: a second one would train the same cells."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from bench.errors import UserError

PATIENCE: Final = 2.0
"""Seconds to wait for a lock, since others take it for a moment to see whether it is held."""


@contextmanager
def alone(directory: Path, command: str, seconds: float = PATIENCE) -> Iterator[None]:
    """Hold the folder for this process; a UserError if another one has it or a part of it."""
    directory.mkdir(parents=True, exist_ok=True)
    with _held(_whole(directory), _busy(directory, command), seconds):
        for part in _parts(directory):
            with _held(part, _busy(directory, f"{command} --shard {_shown(part)}"), seconds):
                pass
        yield


@contextmanager
def one_of(
    directory: Path, command: str, number: int, count: int, seconds: float = PATIENCE
) -> Iterator[None]:
    """Hold one of `count` parts of the folder; the others may be held by other processes.

    A UserError if another process has this part, the whole folder, or a part of another division of it.
    Each takes its own lock before it looks at those of others, so of two that exclude each other, one at
    least sees the other.
    """
    directory.mkdir(parents=True, exist_ok=True)
    busy = _busy(directory, f"{command} --shard {number}/{count}")
    with _held(_part(directory, number, count), busy, seconds):
        with _held(_whole(directory), _busy(directory, command), seconds):
            pass
        for part in _parts(directory):
            if not part.name.endswith(f"-of-{count}.lock"):
                with _held(part, _busy(directory, f"{command} --shard {_shown(part)}"), seconds):
                    pass
        yield


@contextmanager
def in_turn(directory: Path, seconds: float) -> Iterator[bool]:
    """Whether it is this process's turn to make the report of the folder, after waiting for it."""
    lock = FileLock(directory.parent / f".{directory.name}.report.lock")
    with suppress(Timeout):
        lock.acquire(timeout=seconds)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _busy(directory: Path, command: str) -> str:
    return f"another `{command}` is running in {directory}; wait for it or choose another --out"


def _whole(directory: Path) -> Path:
    return directory.parent / f".{directory.name}.lock"


def _part(directory: Path, number: int, count: int) -> Path:
    return directory.parent / f".{directory.name}.shard-{number}-of-{count}.lock"


def _parts(directory: Path) -> list[Path]:
    """The locks of all parts that were ever held."""
    prefix = f".{directory.name}.shard-"
    return sorted(file for file in directory.parent.iterdir() if file.name.startswith(prefix))


def _shown(part: Path) -> str:
    """`3/8`."""
    return part.name.rpartition(".shard-")[2].removesuffix(".lock").replace("-of-", "/")


@contextmanager
def _held(file: Path, busy: str, seconds: float) -> Iterator[None]:
    lock = FileLock(file)
    try:
        with warnings.catch_warnings():
            # filelock would warn, and use a lock that a killed driver leaves behind
            warnings.simplefilter("error")
            lock.acquire(timeout=seconds)
    except Timeout:
        raise UserError(busy) from None
    except (OSError, Warning) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UserError(
            f"cannot lock {file} ({reason}), as on a disk without file locks; have it mounted with them, or "
            "choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()
