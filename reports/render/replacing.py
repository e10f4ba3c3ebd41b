"""Output files appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.errors import UserError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`; the file written there takes its place when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as problem:
        raise UserError(f"Cannot write {path} ({problem.strerror}): choose another directory.") from problem
    finally:
        with suppress(OSError):
            temporary.unlink()
