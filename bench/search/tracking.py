"""Searches in MLflow: an experiment `SUITE tuning`, a parent run per search, a child per trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.search.journal import Trial
from bench.search.plan import Search
from bench.tracking.tracker import Tracker, digest_of
from bench.tracking.view import CellView, Point, allowed, as_parameter


class SearchTracker(Tracker):
    def __init__(self, uri: str | None, out: Path) -> None:
        super().__init__(uri, out)
        self._parents: dict[str, str] = {}
        """Identity of a search → the run that its trials are children of."""

    def log_trial(self, search: Search, trial: Trial) -> None:
        """Write the run of a trial that ended."""
        with self._failures_reported(f"trial {trial.number} of {search.row}"):
            folder = search.folders(trial)[0].path
            digest = hashlib.sha256(json.dumps(asdict(trial), sort_keys=True).encode()).hexdigest()
            if not self._is_logged(folder, digest):
                view = _view_of(search, trial, self._parent(search))
                run = self._write_run(view, "search_trial")
                self._mark(folder, run.info.run_id, digest)

    def log_search(self, search: Search, figures: Mapping[str, float], artefacts: Sequence[Path]) -> None:
        """Add the figures and files of a search to its run."""
        with self._failures_reported(f"the search of {search.row}"):
            digest = digest_of(artefacts)
            if self._is_logged(search.directory, digest):
                return
            client, run_id = self._connect(), self._parent(search)
            for name, value in figures.items():
                client.log_metric(run_id, name, value)
            for path in artefacts:
                client.log_artifact(run_id, str(path))
            client.set_terminated(run_id)
            self._mark(search.directory, run_id, digest)

    def _parent(self, search: Search) -> str:
        if search.identity in self._parents:
            return self._parents[search.identity]
        experiment = self._experiment(_experiment(search))
        run = self._find(experiment, "search_run", search.identity)
        if run is None:
            tags = {
                "search_run": search.identity,
                "suite": search.suite.suite,
                "method": search.method,
                "label": search.row,
                "search": search.algorithm,
                "scheduler": search.scheduler,
                "space": search.space.name,
                "record": search.directory.relative_to(search.out).as_posix(),
            }
            run = self._create(experiment, "search_run", tags, f"{search.row} search")
        self._parents[search.identity] = run.info.run_id
        return self._parents[search.identity]


def _experiment(search: Search) -> str:
    return f"{search.suite.suite} tuning"


def _view_of(search: Search, trial: Trial, parent: str) -> CellView:
    records = [folder.rounds_file for folder in search.folders(trial) if folder.rounds_file.exists()]
    ended = max((round(file.stat().st_mtime * 1000) for file in records), default=0)
    values = search.space.default | trial.values
    return CellView(
        suite=_experiment(search),
        name=f"{search.row} trial {trial.number}",
        status="FAILED" if trial.outcome == "failed" else "FINISHED",
        started=ended,
        ended=ended,
        tags={
            "search_trial": f"{search.identity}-{trial.number}",
            "mlflow.parentRunId": parent,
            "method": search.method,
            "label": search.row,
            "outcome": trial.outcome or "open",
            **({"error": trial.reason} if trial.reason else {}),
        },
        parameters={allowed(key): as_parameter(value) for key, value in values.items()},
        points=[
            Point(name, validation, number, ended)
            for name, history in _metrics(search, trial).items()
            for number, validation in history
        ],
    )


def _metrics(search: Search, trial: Trial) -> dict[str, list[tuple[int, float]]]:
    """Metric → validation accuracy by round: the mean that counts and, of several settings, each of them."""
    settings = search.histories(trial)
    several = settings if len(settings) > 1 else {}
    by_setting = {allowed(f"validation {name}"): history for name, history in several.items()}
    return {"validation": search.history(trial), **by_setting}
