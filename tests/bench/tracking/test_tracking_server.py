"""Records written to an MLflow server, and addresses of stores without their passwords."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.tracking.tracker import Tracker, TrackingError, without_credentials
from tests.kit.tracking import Store, assert_complete

pytestmark = pytest.mark.xdist_group("mlflow")


@pytest.fixture
def server(mlflow_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """MLflow's own server on a free port, on the database of the store; gives host:port."""
    from mlflow.server import ARTIFACT_ROOT_ENV_VAR, BACKEND_STORE_URI_ENV_VAR, app
    from werkzeug.serving import make_server

    monkeypatch.setenv(BACKEND_STORE_URI_ENV_VAR, f"sqlite:///{mlflow_store.out}/mlflow.db")
    monkeypatch.setenv(ARTIFACT_ROOT_ENV_VAR, (mlflow_store.out / "served").as_uri())
    http = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()


@pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi")
def test_a_server_is_written_to_and_the_password_kept_nowhere(mlflow_store: Store, server: str) -> None:
    cell = mlflow_store.cell("served", "a")
    tracker = Tracker(f"http://alice:s3cret@{server}", mlflow_store.out)
    tracker.log_cell(mlflow_store.out, cell.planned)
    (run,) = mlflow_store.runs("served")
    assert_complete(mlflow_store, run)
    assert mlflow_store.pending(cell, tracker=tracker) == []
    marker = json.loads((cell.path / "mlflow.json").read_text())
    assert (marker["uri"], marker["run_id"]) == (f"http://{server}", run.info.run_id)
    assert tracker.ui_command() == f"http://{server}"
    written = [path for path in mlflow_store.out.rglob("*") if path.is_file()]
    assert not [path for path in written if b"s3cret" in path.read_bytes()]


def test_the_ui_shows_the_files_of_a_cell(mlflow_store: Store, server: str) -> None:
    cell = mlflow_store.cell("shown", "a")
    mlflow_store.log(cell)
    (run,) = mlflow_store.runs("shown")
    address = f"http://{server}/get-artifact?path=result.json&run_uuid={run.info.run_id}"
    with urllib.request.urlopen(address) as answer:
        assert answer.read() == (cell.path / "result.json").read_bytes()


@pytest.mark.parametrize("password", ["s3cret", "s3/cret"])
def test_a_server_that_is_down_is_one_error_without_the_password(
    mlflow_store: Store, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    cell = mlflow_store.cell("down", password)
    with pytest.raises(
        TrackingError, match=r"^MLflow at http://127\.0\.0\.1:9 did not take fedlsa-s3-"
    ) as caught:
        Tracker(f"http://alice:{password}@127.0.0.1:9", mlflow_store.out).log_cell(
            mlflow_store.out, cell.planned
        )
    assert "cret" not in str(caught.value)
    assert not (cell.path / "mlflow.json").exists()


def test_a_relative_file_is_the_same_store_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Tracker("sqlite:///my.db", tmp_path).address == f"sqlite:///{tmp_path}/my.db"


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("https://tracking.example/mlflow", "https://tracking.example/mlflow"),
        ("https://alice:pw@tracking.example:5000", "https://tracking.example:5000"),
        ("https://token@tracking.example", "https://tracking.example"),
        ("postgresql+psycopg2://alice:p/w?x@db:5432/runs", "postgresql+psycopg2://db:5432/runs"),
        ("mysql://alice:p@w@db/runs?password=pw", "mysql://db/runs"),
        ("sqlite:////home/a@b/mlflow.db", "sqlite:////home/a@b/mlflow.db"),
    ],
)
def test_an_address_has_no_credentials(uri: str, address: str) -> None:
    assert without_credentials(uri) == address


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("htps://alice:pw@host", "did you mean 'https'?"),
        ("postgres://alice:pw@host/db", "did you mean 'postgresql'?"),
        ("mlruns", "use sqlite:///FILE.db"),
        ("file:///tmp/mlruns", "use sqlite:///FILE.db"),
        ("sqlite://", "names no file"),
    ],
)
def test_a_wrong_uri_is_the_users_to_mend(uri: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        Tracker(uri, tmp_path)
    assert hint in str(caught.value)
    assert "pw" not in str(caught.value)
