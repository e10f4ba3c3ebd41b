"""The database file that MLflow gets: a copy of an empty one in the cache."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.startup.mlflow_template import create_database

pytestmark = pytest.mark.xdist_group("mlflow")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _names(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


def _experiments(path: Path) -> dict[str, str]:
    from mlflow import MlflowClient

    found = MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return {each.experiment_id: each.artifact_location for each in found}


def test_a_new_database_is_a_copy_of_that_in_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_database(tmp_path / "first.db")
    (empty,) = cache.glob("mlflow/*.db")
    with closing(sqlite3.connect(empty)) as database:
        database.execute("CREATE TABLE marker (id INTEGER)")
    create_database(tmp_path / "second.db")
    assert _names(tmp_path / "second.db") - _names(tmp_path / "first.db") == {"marker"}

    monkeypatch.chdir(cache)  # the default experiment is made where the database is first opened
    assert _experiments(tmp_path / "second.db") == {"0": str(cache / "mlruns/0")}


def test_a_damaged_one_in_the_cache_is_made_again(tmp_path: Path, cache: Path) -> None:
    create_database(tmp_path / "first.db")
    (empty,) = cache.glob("mlflow/*.db")
    empty.write_bytes(empty.read_bytes()[:100_000])
    create_database(tmp_path / "second.db")
    assert _names(tmp_path / "second.db") == _names(tmp_path / "first.db")


def test_a_database_that_is_there_is_left_alone(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.db").write_text("mine")
    create_database(tmp_path / "mine.db")
    assert (tmp_path / "mine.db").read_text() == "mine"
    assert not cache.exists()
