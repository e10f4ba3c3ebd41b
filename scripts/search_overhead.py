"""What a search costs beside its trials: 16 trials of 5 s on two cores, against plain `tune.Tuner`.

    python scripts/search_overhead.py

The trials sleep, so that the figures say something about the harness on a busy machine too. Both sides are
measured on the same Ray, after it has started; ideal is 16 × 5 s / 2.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TRIALS, SECONDS, ROUNDS, AT_ONCE = 16, 5.0, 10, 2
IDEAL = TRIALS * SECONDS / AT_ONCE

METHOD = f'''
"""Sleepy: FedAvg whose rounds take their time and nothing else."""

import time

from pydantic import Field

from methods.fedavg import FedAvg


class Sleepy(FedAvg):
    label = "Sleepy"

    depth: float = Field(default=0.5, ge=0, le=1)

    def aggregate(self, task, server, replies):
        time.sleep({SECONDS / ROUNDS})
        return super().aggregate(task, server, replies)
'''
SPACE = """
method: sleepy
hyperparameters:
  depth: {default: 0.5, paper: [0.5], wide: {uniform: [0.0, 1.0]}}
training:
  optimiser.lr: {default: 0.01, paper: [0.01], wide: {log_uniform: [0.001, 0.1]}}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install(folder)
        from bench.cluster.nodes import start_ray

        start_ray(cpus=AT_ONCE)
        ours, plain = search_seconds(folder), plain_seconds(folder)
    for side, seconds in (("bench tune", ours), ("plain tune.Tuner", plain)):
        print(f"{side}: {seconds:.1f} s = {seconds / IDEAL:.2f} × ideal ({IDEAL:.0f} s)")
    print(f"bench tune / plain: {ours / plain:.2f}")


def install(folder: Path) -> None:
    """A package with one method, for this process and for Ray's."""
    about = folder / "sleepy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bench.methods]\nsleepy = sleepy_method:Sleepy\n")
    (folder / "sleepy_method.py").write_text(METHOD)
    (folder / "sleepy.yaml").write_text(SPACE)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


def search_seconds(folder: Path) -> float:
    from bench.cluster.driver_node import open_driver_node
    from bench.cluster.resources import Resources
    from bench.engine.conditions import Conditions
    from bench.records.run_folder import RunFolder
    from bench.search.budget import Limits
    from bench.search.plan import make_search
    from bench.search.progress import SearchProgress
    from bench.search.running_search import Assignment
    from bench.search.searches import run_searches
    from bench.suite.model import Suite

    class Silent(SearchProgress):
        """Shows and logs nothing."""

        def __init__(self) -> None: ...

        def advanced(self, *_: object) -> None: ...

        def ended(self, *_: object) -> None: ...

        def lost(self, *_: object) -> None: ...

        def over(self) -> None: ...

    suite = Suite.model_validate(
        {
            "suite": "overhead",
            "version": 1,
            "title": "Overhead",
            "dataset": {"name": "digits_mini"},
            "partition": {"name": "by_domain", "clients": 4, "samples": 20},
            "model": {"name": "mlp", "hidden": 16},
            "training": {
                "rounds": ROUNDS,
                "epochs": 1,
                "batch_size": 10,
                "optimiser": {"name": "sgd", "lr": 0.05},
            },
            "methods": ["sleepy"],
            "seeds": 1,
        }
    )
    search = make_search(suite, 0, "wide", "optuna", "none", 0, folder)
    search.directory.mkdir(parents=True)
    started = time.monotonic()
    limits = Limits(TRIALS, by_rounds=False, max_failures=5)
    with open_driver_node(RunFolder(search.directory), None, joined=False) as driver_node:
        assignment = Assignment(search, search.journal(), limits, Conditions(data=driver_node), Silent())
        run_searches([assignment], driver_node, Resources(), AT_ONCE)
    taken = time.monotonic() - started
    assert [trial.outcome for trial in search.journal().trials] == ["finished"] * TRIALS
    return taken


def plain_seconds(folder: Path) -> float:
    from ray import tune

    def sleepy(config: dict[str, Any]) -> None:
        for number in range(ROUNDS):
            time.sleep(SECONDS / ROUNDS)
            tune.report({"rounds": number})

    tuner = tune.Tuner(
        tune.with_resources(sleepy, {"CPU": 1}),
        param_space={"depth": tune.uniform(0.0, 1.0)},
        tune_config=tune.TuneConfig(num_samples=TRIALS),
        run_config=tune.RunConfig(name="plain", storage_path=str(folder), verbose=0),
    )
    started = time.monotonic()
    results = tuner.fit()
    assert results.num_errors == 0
    return time.monotonic() - started


if __name__ == "__main__":
    main()
