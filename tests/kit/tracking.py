"""Cells as the engine records them, and an MLflow store to look for them in."""

import contextlib
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from bench.records.schema import PlannedRecord
from bench.tracking.tracker import Tracker

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

    def __init__(self, run_dir: Path, suite: str, name: str, label: str = "FedLSA (λ = 0.7)") -> None:
        self.hash = hashlib.sha256(f"{suite} {name}".encode()).hexdigest()[:16]
        self.run_dir = run_dir
        self.planned = PlannedRecord(
            cell_id=self.hash,
            directory=f"cells/fedlsa-s3-{self.hash}",
            method="fedlsa",
            label=label,
            variant="",
            seed=3,
        )
        self.path = run_dir / self.planned.directory
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
                "training": {"rounds": 2, "batch_size": 8, "optimiser": {"name": "sgd", "lr": 0.01}},
                "evaluation": {"every": 1, "personal": False},
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

    def cell(self, suite: str, name: str, *, done: bool = True, label: str = "FedLSA (λ = 0.7)") -> Cell:
        cell = Cell(self.out, suite, name, label)
        if done:
            cell.train()
            cell.finish()
        return cell

    def log(self, *cells: Cell) -> None:
        for cell in cells:
            self.tracker.log_cell(self.out, cell.planned)

    def pending(self, *cells: Cell, tracker: Tracker | None = None) -> list[Path]:
        """The folders of those cells that are not logged."""
        found = (tracker or self.tracker).pending(self.out, [cell.planned for cell in cells])
        return [self.out / cell.directory for cell in found]

    def restart(self) -> None:
        """Go on as another driver, which knows nothing of the first one."""
        self.tracker = Tracker(None, self.out)

    def experiment(self, suite: str) -> str:
        found = self.client.get_experiment_by_name(suite)
        assert found is not None
        return found.experiment_id

    def runs(self, suite: str) -> list[Any]:
        """The runs of a suite's cells that are not deleted."""
        return [run for run in self._all(suite) if "cell" in run.data.tags]

    def suite_run(self, suite: str) -> Any:
        """The one run of the suite itself."""
        (run,) = [run for run in self._all(suite) if "suite_run" in run.data.tags]
        return run

    def _all(self, suite: str) -> list[Any]:
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


def assert_complete(store: Store, run: Any) -> None:
    assert run.info.status == "FINISHED"
    assert set(run.data.metrics) == set(HISTORY) | set(FINAL)
    for metric, points in HISTORY.items():
        found = store.history(run, metric)
        assert len(found) == len(points), metric
        assert dict(found) == pytest.approx(dict(points), rel=0, abs=0, nan_ok=True), metric
    for metric, value in FINAL.items():
        assert store.history(run, metric) == [(2, value)], metric
