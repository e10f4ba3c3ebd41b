"""The MLflow view of the records, read back through MLflow's own client."""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runner import call_bench
from reports_builder import Planned, write_run

from bench.errors import UserError
from bench.tracking import Tracker, TrackingError, recorded_store, without_credentials

pytestmark = pytest.mark.xdist_group("mlflow")

ROUNDS: list[dict[str, Any]] = [
    {"round": 0, "bytes_up": 5, "bytes_down": 7, "clients": 8, "dropped": 0, "metrics": {}, "seconds": 0.5},
    {
        "round": 1,
        "test": {"mnist": 0.25, "β=0.1": 0.75},
        "personal": 0.5,
        "validation": 0.125,
        "bytes_up": 100,
        "bytes_down": 200,
        "clients": 8,
        "dropped": 0,
        "metrics": {"anchor_loss": 2.0},
        "seconds": 1.0,
    },
    {
        "round": 2,
        "test": {"mnist": 0.5, "β=0.1": 1.0},
        "bytes_up": 100,
        "bytes_down": 200,
        "clients": 7,
        "dropped": 1,
        "metrics": {"anchor_loss": float("nan")},
        "seconds": 1.5,
    },
]
HISTORY: dict[str, list[tuple[int, float]]] = {
    "test_mnist": [(1, 0.25), (2, 0.5)],
    "test_β_0.1": [(1, 0.75), (2, 1.0)],
    "test_avg": [(1, 0.5), (2, 0.75)],
    "personal": [(1, 0.5)],
    "validation": [(1, 0.125)],
    "bytes_up": [(0, 5), (1, 105), (2, 205)],
    "bytes_down": [(0, 7), (1, 207), (2, 407)],
    "metrics.anchor_loss": [(1, 2.0), (2, float("nan"))],
}
FINAL = {
    "final_test_mnist": 0.5,
    "final_test_β_0.1": 1.0,
    "final_avg": 0.75,
    "final_std": 0.25,
    "last5_avg": 0.625,
    "dropped": 1,
    "oracle_avg": 0.75,
    "oracle_round": 2,
    "wall_seconds": 3.0,
    "cpu_seconds": 2.5,
}


class Cell:
    """A cell's directory, written as the engine writes it."""

    def __init__(self, run_dir: Path, suite: str, name: str) -> None:
        self.hash = hashlib.sha256(f"{suite} {name}".encode()).hexdigest()[:16]
        self.run_dir = run_dir
        self.path = run_dir / "cells" / f"fedlsa-s3-{self.hash}"
        self.path.mkdir(parents=True)
        self.write(
            "config.json",
            {
                "schema": 1,
                "cell": self.hash,
                "suite": {"name": suite, "version": 2},
                "variant": "",
                "dataset": {"name": "digits", "domains": ["mnist", "β=0.1"]},
                "partition": {"name": "domain"},
                "model": {"name": "cnn", "norm": None},
                "training": {"rounds": 2, "lr": 0.01},
                "method": {"name": "fedlsa", "version": 1, "hyperparameters": {"lam": 0.7, "seed": 9}},
                "seed": 3,
            },
        )

    def write(self, name: str, content: Any) -> None:
        (self.path / name).write_text(json.dumps(content))

    def train(self, rounds: list[dict[str, Any]] = ROUNDS) -> None:
        lines = [json.dumps(line) + "\n" for line in rounds]
        (self.path / "rounds.jsonl").write_text("".join(lines) + '{"round": 3, "test": {"mn')

    def finish(self, finished: str = "2026-01-02T03:04:05+00:00") -> None:
        final = {"test": ROUNDS[-1]["test"], "avg": 0.75, "std": 0.25, "personal": None, "validation": None}
        result = {
            "schema": 1,
            "cell": self.hash,
            "rounds": 2,
            "final": final,
            "last5_avg": 0.625,
            "oracle": {"round": 2, "avg": 0.75},
            "bytes_up": 205,
            "bytes_down": 407,
            "dropped": 1,
            "provenance": {"commit": "c0ffee"},
            "timing": {"wall_seconds": 3.0, "cpu_seconds": 2.5, "finished": finished},
        }
        self.write("result.json", result)
        (self.path / "error.json").unlink(missing_ok=True)

    def fail(self) -> None:
        self.write("error.json", {"error": "ValueError: loss is NaN", "traceback": "Traceback ..."})


class Store:
    """A fresh SQLite store and MLflow's own client to look into it."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.said = io.StringIO()
        self.tracker = Tracker(None, out)
        with contextlib.redirect_stderr(self.said), contextlib.redirect_stdout(self.said):
            self.log(self.cell("first", "first"))
        from mlflow import MlflowClient

        self.client = MlflowClient(tracking_uri=f"sqlite:///{out}/mlflow.db")

    def cell(self, suite: str, name: str, *, done: bool = True) -> Cell:
        cell = Cell(self.out, suite, name)
        if done:
            cell.train()
            cell.finish()
        return cell

    def log(self, *cells: Cell) -> None:
        for cell in cells:
            self.tracker.log_cell(self.out, cell.path)

    def experiment(self, suite: str) -> str:
        found = self.client.get_experiment_by_name(suite)
        assert found is not None
        return found.experiment_id

    def runs(self, suite: str) -> list[Any]:
        """All of a suite's runs that are not deleted."""
        return list(self.client.search_runs([self.experiment(suite)]))

    def history(self, run: Any, metric: str) -> list[tuple[int, float]]:
        return sorted((p.step, p.value) for p in self.client.get_metric_history(run.info.run_id, metric))

    def files(self, run: Any, folder: str | None = None) -> dict[str, bytes]:
        root = Path(run.info.artifact_uri.removeprefix("file://"))
        return {
            item.path: (root / item.path).read_bytes()
            for item in self.client.list_artifacts(run.info.run_id, folder)
            if not item.is_dir
        }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("out"))


def assert_complete(store: Store, run: Any) -> None:
    assert run.info.status == "FINISHED"
    assert set(run.data.metrics) == set(HISTORY) | set(FINAL)
    for metric, points in HISTORY.items():
        found = store.history(run, metric)
        assert len(found) == len(points), metric
        assert dict(found) == pytest.approx(dict(points), rel=0, abs=0, nan_ok=True), metric
    for metric, value in FINAL.items():
        assert store.history(run, metric) == [(2, value)], metric


def test_nothing_is_printed_while_the_database_is_made(store: Store) -> None:
    assert store.said.getvalue() == ""
    assert (store.out / "mlflow.db").exists()


def test_a_finished_cell_becomes_a_run(store: Store) -> None:
    cell = store.cell("whole", "a")
    store.log(cell)
    (run,) = store.runs("whole")
    assert_complete(store, run)
    assert run.info.run_name == "fedlsa s3"
    assert (run.info.start_time, run.info.end_time) == (1767323042000, 1767323045000)
    assert run.data.params == {
        "suite.name": "whole",
        "suite.version": "2",
        "variant": "",
        "dataset.name": "digits",
        "dataset.domains": json.dumps(["mnist", "β=0.1"]),
        "partition.name": "domain",
        "model.name": "cnn",
        "model.norm": "null",
        "training.rounds": "2",
        "training.lr": "0.01",
        "method.name": "fedlsa",
        "method.version": "1",
        "lam": "0.7",
        "seed": "3",
        "method.hyperparameters.seed": "9",
    }
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    assert tags == {
        "cell": cell.hash,
        "suite": "whole",
        "method": "fedlsa",
        "variant": "",
        "seed": "3",
        "commit": "c0ffee",
        "record": f"cells/{cell.path.name}",
    }
    names = ("config.json", "result.json")
    assert store.files(run) == {name: (cell.path / name).read_bytes() for name in names}
    assert Path(run.info.artifact_uri.removeprefix("file://")).is_relative_to(store.out / "mlartifacts")


def test_a_long_cell_needs_several_batches(store: Store) -> None:
    cell = store.cell("long", "a", done=False)
    cell.train(
        [{"round": n, "bytes_up": 1, "bytes_down": 2, "metrics": {"loss": 1 / (n + 1)}} for n in range(700)]
    )
    config = json.loads((cell.path / "config.json").read_text())
    config["method"]["hyperparameters"] = {f"h{n}": n for n in range(250)}
    cell.write("config.json", config)
    cell.finish()
    store.log(cell)
    (run,) = store.runs("long")
    assert store.history(run, "metrics.loss") == [(n, 1 / (n + 1)) for n in range(700)]
    assert store.history(run, "bytes_down") == [(n, 2 * (n + 1)) for n in range(700)]
    assert {f"h{n}": str(n) for n in range(250)}.items() <= run.data.params.items()


def test_logging_again_changes_nothing(store: Store) -> None:
    cell = store.cell("again", "a")
    store.log(cell)
    before = store.runs("again")
    (cell.path / "mlflow.json").unlink()
    store.log(cell)
    after = store.runs("again")
    assert [run.info.run_id for run in after] == [run.info.run_id for run in before]
    assert_complete(store, after[0])


def test_a_run_left_by_a_killed_driver_is_completed(store: Store) -> None:
    from mlflow.entities import Metric, Param

    store.log(store.cell("killed", "other"))
    cell = store.cell("killed", "a")
    left = store.client.create_run(store.experiment("killed"), tags={"cell": cell.hash})
    store.client.log_batch(
        left.info.run_id,
        [Metric("test_mnist", 0.25, 1, 1), Metric("bytes_up", 5, 1, 0)],
        [Param("lam", "0.7")],
    )
    assert store.tracker.pending([cell.path]) == [cell.path]
    store.log(cell)
    mine = [run for run in store.runs("killed") if run.data.tags["cell"] == cell.hash]
    assert [run.info.run_id for run in mine] == [left.info.run_id]
    assert_complete(store, mine[0])
    assert mine[0].data.params["training.lr"] == "0.01"


def test_a_cell_run_anew_with_other_values_shows_only_those(store: Store) -> None:
    cell = store.cell("anew", "a", done=False)
    cell.train([{**ROUNDS[1], "test": {"mnist": 0.0, "β=0.1": 0.0}}])
    cell.finish("2026-01-01T00:00:00+00:00")
    store.log(cell)
    cell.train()
    cell.finish()
    store.log(cell)
    (run,) = store.runs("anew")
    assert_complete(store, run)


def test_a_failed_cell_is_shown_and_mended_when_it_succeeds(store: Store) -> None:
    cell = store.cell("mended", "a", done=False)
    cell.train(ROUNDS[:2])
    cell.fail()
    assert store.tracker.pending([cell.path]) == [cell.path]
    store.log(cell)
    (failed,) = store.runs("mended")
    assert failed.info.status == "FAILED"
    assert failed.data.tags["error"] == "ValueError: loss is NaN"
    assert store.history(failed, "test_avg") == [(1, 0.5)]
    assert set(store.files(failed)) == {"config.json"}
    assert store.tracker.pending([cell.path]) == []

    cell.train()
    cell.finish()
    assert store.tracker.pending([cell.path]) == [cell.path]
    store.log(cell)
    (mended,) = store.runs("mended")
    assert mended.info.run_id == failed.info.run_id
    assert "error" not in mended.data.tags
    assert_complete(store, mended)


def test_a_deleted_experiment_comes_back(store: Store) -> None:
    store.log(store.cell("deleted", "a"))
    store.client.delete_experiment(store.experiment("deleted"))
    Tracker(None, store.out).log_cell(store.out, store.cell("deleted", "b").path)
    assert len(store.runs("deleted")) == 2


def test_pending_cells_are_those_that_ended_and_are_not_logged(store: Store, tmp_path: Path) -> None:
    logged, fresh = store.cell("pending", "a"), store.cell("pending", "b")
    running = store.cell("pending", "c", done=False)
    running.train()
    cells = [logged.path, fresh.path, running.path]
    store.log(logged)
    assert store.tracker.pending(cells) == [fresh.path]
    assert Tracker(None, tmp_path).pending([logged.path]) == [logged.path]
    logged.finish("2026-02-02T00:00:00+00:00")
    assert store.tracker.pending(cells) == [logged.path, fresh.path]


def test_cells_are_pending_again_while_the_database_is_gone(store: Store) -> None:
    cell = store.cell("gone", "a")
    store.log(cell)
    database, elsewhere = store.out / "mlflow.db", store.out / "elsewhere.db"
    database.rename(elsewhere)
    assert store.tracker.pending([cell.path]) == [cell.path]
    elsewhere.rename(database)
    assert store.tracker.pending([cell.path]) == []


def test_a_relative_file_is_the_same_store_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Tracker("sqlite:///my.db", tmp_path).address == f"sqlite:///{tmp_path}/my.db"


def test_tables_and_figures_are_replaced(store: Store) -> None:
    run_dir = store.out
    (run_dir / "plan.json").write_text(json.dumps({"schema": 1, "suite": {"name": "tables", "version": 2}}))
    table, figure = run_dir / "tables" / "table.md", run_dir / "figures" / "curves.svg"
    for path, text in ((table, "old"), (figure, "<svg/>")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    store.log(store.cell("tables", "a"))
    store.tracker.log_suite(run_dir)
    table.write_text("new")
    store.tracker.log_suite(run_dir)
    (run,) = [run for run in store.runs("tables") if "suite_run" in run.data.tags]
    assert (run.info.status, run.info.run_name) == ("FINISHED", "tables v2")
    assert store.files(run, "tables") == {"tables/table.md": b"new"}
    assert store.files(run, "figures") == {"figures/curves.svg": b"<svg/>"}


def test_a_report_made_again_renews_what_mlflow_shows(store: Store, tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "quickstart", [Planned("fedavg", 0, (0.5, 0.5))])
    tracker = Tracker(f"sqlite:///{store.out}/mlflow.db", tmp_path)
    tables = run_dir / "tables"
    tables.mkdir()
    (tables / "quickstart.md").write_text("old")
    assert recorded_store(run_dir) is None
    tracker.log_suite(run_dir)
    assert recorded_store(run_dir) == tracker.address
    for _ in range(2):
        assert call_bench("report", run_dir, "--format", "md").code == 0
    (run,) = [run for run in store.runs("quickstart") if "suite_run" in run.data.tags]
    logged = store.files(run, "tables") | store.files(run, "figures")
    assert logged["tables/quickstart.md"] == (tables / "quickstart.md").read_bytes()
    assert b"50.00" in logged["tables/quickstart.md"]
    assert "figures/convergence.png" in logged


def test_mlflow_is_not_imported_when_there_is_nothing_to_write(store: Store) -> None:
    cell = store.cell("idle", "a")
    (store.out / "plan.json").write_text(json.dumps({"schema": 1, "suite": {"name": "idle", "version": 1}}))
    store.log(cell)
    store.tracker.log_suite(store.out)
    code = f"""
import sys
from pathlib import Path
from bench.tracking import Tracker
out, cell = Path({str(store.out)!r}), Path({str(cell.path)!r})
tracker = Tracker(None, out)
tracker.log_suite(out)
print(tracker.pending([cell]), "--backend-store-uri" in tracker.ui_command(), "mlflow" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True False\n"


@pytest.fixture
def server(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """MLflow's own server on a free port, on the database of the store; gives host:port."""
    from mlflow.server import ARTIFACT_ROOT_ENV_VAR, BACKEND_STORE_URI_ENV_VAR, app
    from werkzeug.serving import make_server

    monkeypatch.setenv(BACKEND_STORE_URI_ENV_VAR, f"sqlite:///{store.out}/mlflow.db")
    monkeypatch.setenv(ARTIFACT_ROOT_ENV_VAR, (store.out / "served").as_uri())
    http = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    yield f"127.0.0.1:{http.server_port}"
    http.shutdown()
    thread.join()


@pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi")
def test_a_server_is_written_to_and_the_password_kept_nowhere(store: Store, server: str) -> None:
    cell = store.cell("served", "a")
    tracker = Tracker(f"http://alice:s3cret@{server}", store.out)
    tracker.log_cell(store.out, cell.path)
    (run,) = store.runs("served")
    assert_complete(store, run)
    assert tracker.pending([cell.path]) == []
    marker = json.loads((cell.path / "mlflow.json").read_text())
    assert (marker["uri"], marker["run_id"]) == (f"http://{server}", run.info.run_id)
    assert tracker.ui_command() == f"http://{server}"
    written = [path for path in store.out.rglob("*") if path.is_file()]
    assert not [path for path in written if b"s3cret" in path.read_bytes()]


def test_the_ui_shows_the_files_of_a_cell(store: Store, server: str) -> None:
    cell = store.cell("shown", "a")
    store.log(cell)
    (run,) = store.runs("shown")
    address = f"http://{server}/get-artifact?path=result.json&run_uuid={run.info.run_id}"
    with urllib.request.urlopen(address) as answer:
        assert answer.read() == (cell.path / "result.json").read_bytes()


@pytest.mark.parametrize("password", ["s3cret", "s3/cret"])
def test_a_server_that_is_down_is_one_error_without_the_password(
    store: Store, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    cell = store.cell("down", password)
    with pytest.raises(
        TrackingError, match=r"^MLflow at http://127\.0\.0\.1:9 did not take fedlsa-s3-"
    ) as caught:
        Tracker(f"http://alice:{password}@127.0.0.1:9", store.out).log_cell(store.out, cell.path)
    assert "cret" not in str(caught.value)
    assert not (cell.path / "mlflow.json").exists()


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


@pytest.mark.long
def test_a_kill_while_the_database_is_made_does_no_harm(tmp_path: Path) -> None:
    cell = Cell(tmp_path, "kill", "a")
    cell.train()
    cell.finish()
    code = f"""
from pathlib import Path
from bench.tracking import Tracker
Tracker(None, Path({str(tmp_path)!r})).log_cell(Path({str(tmp_path)!r}), Path({str(cell.path)!r}))
"""
    command = [sys.executable, "-c", code]
    half_made = tmp_path / ".mlflow.db.new" / "mlflow.db"
    with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as first:
        deadline = time.monotonic() + 60
        while not (half_made.exists() and half_made.stat().st_size > 300_000):
            assert time.monotonic() < deadline and first.poll() is None
            time.sleep(0.005)
        first.kill()
    assert not (tmp_path / "mlflow.db").exists()
    together = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(120) for process in together] == [0, 0]
    assert not half_made.parent.exists()
