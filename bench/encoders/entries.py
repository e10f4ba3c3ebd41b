"""Entries of the cache that take long to make: one process makes an entry, the others wait for it."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bench.errors import UserError


def digest(identity: Mapping[str, Any]) -> str:
    """What an entry is made from, as a name for it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@contextmanager
def sole_worker(entry: Path, work: str) -> Iterator[None]:
    """Only one process at a time is inside for the same entry; if it cannot write, that is a sentence."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(entry.with_name(f"{entry.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print(f"waiting for another process that computes {work}", file=sys.stderr)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()
    except OSError as error:
        raise UserError(
            f"cannot write {work} to the cache {entry.parent}: {error.strerror or error}; "
            "make room there or set BENCH_CACHE to another folder"
        ) from error
