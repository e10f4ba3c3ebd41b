"""MLflow's database in a file, as a copy of an empty one: MLflow takes over a second to make its tables."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from filelock import FileLock

from bench.data.cache import cache_root


def create_database(path: Path) -> None:
    """Make a database for MLflow unless there is one."""
    _create(path, _copy_an_empty_one)


def _create(path: Path, write: Callable[[Path], None]) -> None:
    """Have a file written aside and move it into place: a kill half-way, or two drivers, would spoil it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        if path.exists():
            return
        for left_behind in path.parent.glob(f".{path.name}.new-*"):
            shutil.rmtree(left_behind, ignore_errors=True)
        # A name of its own each time, since MLflow takes a file that it has opened before for the same one.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.new-") as aside:
            write(Path(aside, path.name))
            Path(aside, path.name).replace(path)


def _copy_an_empty_one(path: Path) -> None:
    import mlflow

    empty = cache_root() / "mlflow" / f"empty-{mlflow.__version__}.db"
    if empty.exists() and not _is_whole(empty):
        empty.unlink()
    _create(empty, _make_tables)
    shutil.copyfile(empty, path)


def _make_tables(path: Path) -> None:
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as database, database:
        # It names the folder it was made in; MLflow makes another one where none is.
        database.execute("DELETE FROM experiments WHERE name = 'Default'")


def _is_whole(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as database:
            return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False
