"""A package of somebody else's with one method that can be watched at work, and searches of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
import yaml

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.search.plan import Search, make_search
from bench.suite.loading import load_suite
from bench.suite.model import Suite
from bench.suite.rows import with_rows
from tests.kit.cli import TINY, read, rounds_of, write_suite
from tests.kit.places import REPOSITORY

STEADY = '''
"""Steady: FedAvg that writes down every round it does, where, and when."""

import json
import os
import time
from pathlib import Path

import torch
from pydantic import Field

from methods.fedavg import FedAvg

HERE = Path(__file__).parent


class Steady(FedAvg):
    label = "Steady"
    stacks_server = False

    shift: float = Field(default=0.5, ge=0, le=1)

    def server(self, task):
        return super().server(task) | {"rounds": torch.zeros(())}

    def aggregate(self, task, server, replies):
        number = int(server["rounds"]) + 1
        started = time.time()
        self._hold()
        line = {"shift": self.shift, "lr": task.optimiser.lr, "seed": task.seed, "round": number,
                "pid": os.getpid(), "node": _node(), "started": started, "ended": time.time()}
        with (HERE / "done.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\\n")
        return super().aggregate(task, server, replies) | {"rounds": server["rounds"] + 1}

    def _hold(self):
        """Take the time that the file `pace` says, or wait for as many others as `together` says."""
        time.sleep(float((HERE / "pace").read_text()))
        try:
            together = int((HERE / "together").read_text())
        except FileNotFoundError:
            return
        (HERE / f"here-{os.getpid()}").touch()
        deadline = time.time() + 120
        while len(list(HERE.glob("here-*"))) < together:
            if time.time() > deadline:
                raise TimeoutError("the others did not come")
            time.sleep(0.05)
        time.sleep(1)


def _node():
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"
'''

SPACE = {
    "method": "steady",
    "hyperparameters": {
        "shift": {
            "default": 0.5,
            "paper": [0.0, 0.25, 0.5, 0.75, 1.0],
            "source": "nowhere",
            "wide": {"uniform": [0.0, 1.0]},
        }
    },
    "training": {
        "optimiser.lr": {
            "default": 0.01,
            "paper": [0.01, 0.1],
            "source": "nowhere",
            "wide": {"log_uniform": [0.001, 0.1]},
        }
    },
}

ONE_BY_ONE: dict[str, Any] = {"name": "cnn", "channels": [2, 3], "features": 8, "embedding": 4}
"""A model with convolutions: its cells are never stacked, so that records can be compared bit by bit."""


class Package:
    """Installed in a folder that goes on PYTHONPATH."""

    def __init__(self, folder: Path, pace: float = 0.0) -> None:
        self.folder = folder
        if folder.exists():
            return
        about = folder / "steady_methods-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: steady-methods\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[bench.methods]\nsteady = steady_methods:Steady\n")
        (folder / "steady_methods.py").write_text(STEADY)
        (folder / "steady.yaml").write_text(yaml.safe_dump(SPACE))
        self.take(pace)

    @property
    def path(self) -> str:
        """PYTHONPATH of a process that is to find it, and the bench of this checkout."""
        return os.pathsep.join([str(self.folder), str(REPOSITORY)])

    def together(self, count: int) -> None:
        """From now on a round ends only when so many processes are in one."""
        for old in self.folder.glob("here-*"):
            old.unlink()
        (self.folder / "together").write_text(str(count))

    def alone(self) -> None:
        (self.folder / "together").unlink()

    def take(self, pace: float) -> None:
        """From now on a round takes so many seconds."""
        (self.folder / "pace").write_text(str(pace))

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """All that were done, in order."""
        file = self.folder / "done.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def keep(self, name: str) -> None:
        """Put the rounds so far aside."""
        (self.folder / "done.jsonl").rename(self.folder / f"done-{name}.jsonl")


def tiny_suite(folder: Path, rounds: int, **changes: Any) -> Path:
    training = TINY["training"] | {"rounds": rounds}
    return write_suite(folder, **{"training": training, "methods": ["steady"], "seeds": 1} | changes)


def journal(folder: Path) -> dict[int, dict[str, Any]]:
    """Trial → all that is written about it; a line that comes twice is an error."""
    trials: dict[int, dict[str, Any]] = {}
    for line in map(json.loads, (folder / "trials.jsonl").read_text().splitlines()):
        del line["seal"]
        known = trials.setdefault(line.pop("trial"), {})
        assert not known.keys() & line.keys(), f"written twice: {line}"
        known |= line
    return trials


def search_of(
    suite: Path, out: Path, algorithm: str, scheduler: str, space: str = "wide", method: str = "steady"
) -> Search:
    return one_search(load_suite(str(suite)), method, space, algorithm, scheduler, 0, out.absolute())


def one_search(
    suite: Suite, method: str, space: str, algorithm: str, scheduler: str, seed: int, out: Path
) -> Search:
    """The search of one method of a suite."""
    return make_search(with_rows(suite, [method]), 0, space, algorithm, scheduler, seed, out)


def assert_the_same_as_alone(search: Search, trial: dict[str, Any], folder: Path) -> None:
    """The records of a trial's only cell are those of the cell run here without Ray or interruption."""
    (cell,) = search.cells(trial["values"])
    torch.set_num_threads(1)  # as a trial has it: the number of threads may change the last bit
    run = CellRun(CellFolder(folder / cell.cell_id), cell.config, Conditions())
    while not run.done:
        run.advance()
    assert rounds_of(search.directory / cell.directory) == rounds_of(run.folder.path)
    result = read(search.directory / cell.directory / "result.json")
    assert result["final"] == read(run.folder.path / "result.json")["final"]
    assert trial["validation"] == result["final"]["validation"]


def suite(*methods: Any, **changes: Any) -> Suite:
    return Suite.model_validate(TINY | {"methods": list(methods or ("fedprox",)), "seeds": 1} | changes)
