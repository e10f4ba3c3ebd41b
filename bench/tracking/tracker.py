"""MLflow as a view of the records, written only by the driver: an experiment per suite, in it one run for the
suite and, as children of it, one per cell."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError, nearest
from bench.records.cell_folder import CellFolder
from bench.records.files import write_json
from bench.records.schema import PlannedRecord
from bench.startup.mlflow_template import create_database
from bench.tracking.view import CellView, Point, view_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

MARKER = "mlflow.json"
SCHEMES = ("http", "https", "mssql", "mysql", "postgresql", "sqlite")
PARAMETERS_PER_BATCH = 100
METRICS_PER_BATCH = 900

# Set before MLflow is first imported, unless the user did: no messages between ours, no usage reports to its
# makers, and a server that is down found out in seconds rather than minutes.
ENVIRONMENT = {
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class TrackingError(Exception):
    """MLflow could not be written. The records are whole, and the next run logs what is missing."""


class Tracker:
    """Writes cells and suites to one MLflow tracking store; importing MLflow waits until there is a need."""

    def __init__(self, uri: str | None, out: Path) -> None:
        self._uri = _absolute(uri or f"sqlite:///{out.absolute() / 'mlflow.db'}")
        self._database = _sqlite_file(self._uri)
        self._out = out.absolute()
        self._client: MlflowClient | None = None
        self._experiments: dict[str, str] = {}
        self._created: dict[str, set[str]] = {}
        """Experiments that this tracker has created → the keys of its runs: there can be no others."""
        self._suite_runs: dict[str, str] = {}
        """Name and version of a suite → the run that its cells are children of."""
        self.address = without_credentials(self._uri)

    def pending(self, run_dir: Path, cells: Iterable[PlannedRecord]) -> list[PlannedRecord]:
        """The cells that ended and are not in this store with their present result and label.

        Cells that version 0.1 has logged, without label and parent, are among them once, since their markers
        do not match. Logging them again finds their runs by the tag `cell` and adds what is missing there.
        """
        ended = [(cell, CellFolder(run_dir / cell.directory).end_file) for cell in cells]
        return [
            cell
            for cell, end in ended
            if end and not self._is_logged(run_dir / cell.directory, _cell_digest(cell, end))
        ]

    def log_cell(self, run_dir: Path, cell: PlannedRecord) -> None:
        """Make the run of this cell below that of its suite, or complete the one it has."""
        folder = CellFolder(run_dir / cell.directory)
        with self._failures_reported(folder.path.name):
            end, config = folder.end_file, folder.config()
            if end is None:
                raise FileNotFoundError(f"{folder.path} has neither result.json nor error.json")
            if config is None:
                raise FileNotFoundError(f"{folder.path} has no config.json")
            digest = _cell_digest(cell, end)
            parent = self._suite_run(config.suite.name, config.suite.version)
            run = self._write_run(view_of(folder, config, cell, parent), "cell")
            self._put(run, [folder.path / name for name in ("config.json", "result.json")])
            self._mark(folder.path, run.info.run_id, digest)

    def log_suite(self, run_dir: Path) -> None:
        """Put the tables and figures of a run into that of the suite, in place of those of the same names."""
        with self._failures_reported("the tables and figures"):
            artefacts = suite_artefacts(run_dir)
            digest = digest_of(artefacts)
            if self._is_logged(run_dir, digest):
                return
            suite = json.loads((run_dir / "plan.json").read_text())["suite"]
            client, run_id = self._connect(), self._suite_run(suite["name"], suite["version"])
            for path in artefacts:
                inside = path.is_relative_to(run_dir) and path.parent != run_dir
                folder = path.parent.relative_to(run_dir).as_posix() if inside else None
                client.log_artifact(run_id, str(path), folder)
            client.set_terminated(run_id)
            self._mark(run_dir, run_id, digest)

    def ui_command(self) -> str:
        """What shows the runs: the command that opens the store, or the address of the server."""
        if self.address.startswith("http"):
            return self.address
        program = "mlflow" if shutil.which("mlflow") else str(Path(sys.executable).with_name("mlflow"))
        # said although it is MLflow's default: who opens the page to others should have to ask for it
        return f"{shlex.quote(program)} ui --host 127.0.0.1 --backend-store-uri {shlex.quote(self.address)}"

    def _connect(self) -> MlflowClient:
        if self._client is None:
            for variable, value in ENVIRONMENT.items():
                os.environ.setdefault(variable, value)
            from mlflow import MlflowClient

            for noisy in ("mlflow", "alembic"):  # Ray Tune may have imported MLflow before
                logging.getLogger(noisy).setLevel(logging.CRITICAL)
            logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
            if self._database is not None:
                create_database(self._database)
            self._client = MlflowClient(tracking_uri=self._uri)
        return self._client

    def _experiment(self, name: str) -> str:
        if name not in self._experiments:
            client = self._connect()
            found = client.get_experiment_by_name(name)
            if found is None:
                self._experiments[name] = client.create_experiment(name, self._artefact_location())
                self._created[self._experiments[name]] = set()
            else:
                if found.lifecycle_stage == "deleted":
                    client.restore_experiment(found.experiment_id)
                self._experiments[name] = found.experiment_id
        return self._experiments[name]

    def _suite_run(self, suite: str, version: int) -> str:
        """The id of the suite's run: the one in the store, whoever made it, or else a new one."""
        key = f"{suite} v{version}"
        if key not in self._suite_runs:
            experiment = self._experiment(suite)
            run = self._find(experiment, "suite_run", key)
            if run is None:
                run = self._create(experiment, "suite_run", {"suite_run": key, "suite": suite}, key)
            self._suite_runs[key] = run.info.run_id
        return self._suite_runs[key]

    def _artefact_location(self) -> str | None:
        """Beside the database, since MLflow would take the working directory; a server has its own place."""
        if self.address.startswith("http"):
            return None
        folder = self._database.parent if self._database else self._out
        return (folder / "mlartifacts").as_uri()

    def _find(self, experiment: str, tag: str, value: str) -> Run | None:
        if experiment in self._created and value not in self._created[experiment]:
            return None
        runs = self._connect().search_runs([experiment], f"tags.{tag} = '{value}'", max_results=1)
        return runs[0] if runs else None

    def _create(
        self, experiment: str, key: str, tags: Mapping[str, str], name: str, started: int | None = None
    ) -> Run:
        """A run that is found by its tag `key`."""
        if experiment in self._created:
            self._created[experiment].add(tags[key])
        return self._connect().create_run(experiment, started, dict(tags), name)

    def _put(self, run: Run, files: Iterable[Path]) -> None:
        """Those of the files that are there, beside the run; where that is needs not be asked of a server."""
        client = self._connect()
        there = [str(file) for file in files if file.exists()]
        if not run.info.artifact_uri.startswith("file:"):
            for file in there:
                client.log_artifact(run.info.run_id, file)
            return
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        place = get_artifact_repository(run.info.artifact_uri)
        for file in there:
            place.log_artifact(file)  # type: ignore[no-untyped-call]

    def _write_run(self, view: CellView, key: str) -> Run:
        """Under the tag `key` there is one run at most."""
        client = self._connect()
        from mlflow.entities import Metric, Param, RunTag

        experiment = self._experiment(view.suite)
        run = self._find(experiment, key, view.tags[key])
        logged = self._logged_points(run) if run else set()
        if run and not (
            logged <= {point.identity for point in view.points}
            and run.data.params.items() <= view.parameters.items()
        ):
            # MLflow cannot take values back, so a run that tells another story makes room.
            client.delete_run(run.info.run_id)
            run, logged = None, set()
        if run is None:
            run = self._create(experiment, key, view.tags, view.name, view.started)
        else:
            for stale in {"error", "swept_row"} & run.data.tags.keys() - view.tags.keys():
                client.delete_tag(run.info.run_id, stale)
            client.log_batch(run.info.run_id, tags=[RunTag(*tag) for tag in view.tags.items()])
            if run.info.run_name != view.name:
                client.update_run(run.info.run_id, name=view.name)
        run_id: str = run.info.run_id

        parameters = [Param(*item) for item in view.parameters.items() if item[0] not in run.data.params]
        metrics = [
            Metric(point.metric, point.value, point.time, point.step)
            for point in view.points
            if point.identity not in logged
        ]
        while parameters or metrics:
            client.log_batch(run_id, metrics[:METRICS_PER_BATCH], parameters[:PARAMETERS_PER_BATCH])
            metrics, parameters = metrics[METRICS_PER_BATCH:], parameters[PARAMETERS_PER_BATCH:]
        client.set_terminated(run_id, view.status, view.ended)
        return run

    def _logged_points(self, run: Run) -> set[tuple[str, int, str]]:
        client = self._connect()
        return {
            Point(point.key, point.value, point.step, point.timestamp).identity
            for metric in run.data.metrics
            for point in client.get_metric_history(run.info.run_id, metric)
        }

    def _is_logged(self, folder: Path, digest: str) -> bool:
        if self._database is not None and not self._database.exists():
            return False
        try:
            marker = json.loads((folder / MARKER).read_text())
        except (OSError, ValueError):
            return False
        return (marker.get("uri"), marker.get("sha256")) == (self.address, digest)

    def _mark(self, folder: Path, run_id: str, digest: str) -> None:
        write_json(folder / MARKER, {"uri": self.address, "run_id": run_id, "sha256": digest})

    @contextmanager
    def _failures_reported(self, what: str) -> Iterator[None]:
        """Whatever goes wrong in or behind MLflow costs the view, never the benchmark."""
        try:
            yield
        except Exception as error:
            lines = str(error).replace(self._uri, self.address).splitlines() or [type(error).__name__]
            cause = textwrap.shorten(re.sub(r"://[^/\s]*@", "://", lines[0]), 160)
            raise TrackingError(
                f"MLflow at {self.address} did not take {what} ({cause}); "
                "the records are complete, run the same command again to log them."
            ) from error


def suite_artefacts(run_dir: Path) -> list[Path]:
    """The tables, figures and pages in a run's folder, whoever made them."""
    found = (path for pattern in ("tables/*", "figures/*", "*.html") for path in run_dir.glob(pattern))
    return sorted(path for path in found if _is_own(path, run_dir) and not path.name.startswith("."))


def _is_own(path: Path, run_dir: Path) -> bool:
    """Whether it is a file of the run, and no link to one elsewhere."""
    return path.is_file() and path.resolve().is_relative_to(run_dir.resolve())


def recorded_store(run_dir: Path) -> str | None:
    """The address of the store that has the tables of this run, without credentials; None if none has."""
    try:
        return str(json.loads((run_dir / MARKER).read_text())["uri"])
    except (OSError, ValueError, KeyError):
        return None


def without_credentials(uri: str) -> str:
    """The address alone: no user, password or query. A password may hold any character but the last @."""
    if uri.startswith("sqlite"):
        return uri
    scheme, _, rest = uri.partition("://")
    address = re.sub(r"^[^@]*@(?:[^/?#]*@)?", "", rest)
    return f"{scheme}://{re.split('[?#]', address)[0]}"


def _absolute(uri: str) -> str:
    """The URI checked, a relative SQLite file taken from the working directory."""
    scheme, separator, rest = uri.partition("://")
    dialect = scheme.partition("+")[0]
    if not separator or dialect not in SCHEMES:
        wrong = f"--tracking-uri '{without_credentials(uri) if separator else uri}'"
        if separator and dialect != "file":
            raise UserError(f"{wrong} has the unknown scheme '{dialect}'; {nearest(dialect, SCHEMES)}")
        raise UserError(f"{wrong} is a folder, which MLflow 3 does not write to; use sqlite:///FILE.db.")
    if dialect != "sqlite":
        return uri
    if not rest.removeprefix("/"):
        raise UserError(f"--tracking-uri '{uri}' names no file; use sqlite:///FILE.db.")
    return f"{scheme}:///{Path(rest.removeprefix('/')).absolute()}"


def _sqlite_file(uri: str) -> Path | None:
    return Path(uri.partition(":///")[2]) if uri.startswith("sqlite") else None


def _cell_digest(cell: PlannedRecord, end: Path) -> str:
    """Changes with the cell's result, its label and its place in a sweep: a suite may change only these."""
    swept = f"\0{cell.swept.model_dump_json()}" if cell.swept else ""
    return hashlib.sha256(f"{cell.label}\0{digest_of([end])}{swept}".encode()).hexdigest()


def digest_of(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
