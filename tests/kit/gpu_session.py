"""Commands in one process whose Ray believes that it has eight CPUs and a GPU.

`python -m tests.kit.gpu_session FOLDER` has one session of Ray and few workers, since starting these is what
takes time. Ray counts GPUs without looking at them. The last line printed has the outcomes by name, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.kit.cli import Outcome, call_bench
from tests.kit.tune import Package


class Session:
    """What the commands have in common: a folder with the suites, and a package with one method."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = Package(folder / "site")

    def tune(self, name: str, *more: object) -> Outcome:
        suite, out = self.folder / "tune" / "tiny.yaml", self.folder / name
        command: list[object] = ["tune", "--suite", suite, "--method", "steady", "--seeds", "1", "--out", out]
        command += ["--tracking-uri", f"sqlite:///{self.folder}/mlflow.db", "--tuned-dir", out / "tuned"]
        return call_bench(*command, *more, PYTHONPATH=self.package.path)

    def searches(self) -> dict[str, Outcome]:
        """Trials that share the GPU or ask for too much of it, that diverge, and that are stopped early."""
        found = {}
        self.package.together(3)
        few = ["--rounds", "1", "--trials", "3", "--scheduler", "none"]
        found["shared"] = self.tune("shared", *few, "--gpus-per-trial", "0.3")
        self.package.keep("shared")
        self.package.alone()
        found["greedy"] = self.tune("greedy", "--gpus-per-trial", "2")
        rates = "training.optimiser.lr=1e30,1e31,0.05"
        grid = ["--space", "paper", "--search", "grid", "--sweep", rates, "--sweep", "steady.shift=0.5,0.6"]
        cpu = ["--gpus-per-trial", "0", "--max-concurrent", "1", "--scheduler", "none", "--rounds", "2"]
        found["diverging"] = self.tune("diverging", *grid, *cpu, "--trials", "20")
        found["giving up"] = self.tune("giving up", *grid, *cpu, "--trials", "8", "--max-failures", "2")
        asha = ["--gpus-per-trial", "0", "--max-concurrent", "2", "--search", "random", "--rounds", "9"]
        found["rounds"] = self.tune("rounds", *asha, "--trials", "6", "--budget", "rounds")
        return found

    def resources(self) -> dict[str, Any]:
        """How many trials fit, a run that asks for too much, and what the doctor says."""
        from bench.cluster.nodes import nodes
        from bench.cluster.resources import Resources

        runs = self.folder / "runs"
        run = ["run", "--suite", self.folder / "run" / "tiny.yaml", "--out", runs]
        return {
            "fits": {gpus: Resources(gpus=gpus).at_once(nodes()) for gpus in (0.1, 0.25, 0.3, 1, 2)},
            "greedy run": call_bench(*run, "--gpus-per-trial", "2"),
            "doctor": call_bench("doctor", "--data-root", self.folder / "nowhere", "--out", runs),
        }


if __name__ == "__main__":
    from bench.cluster.nodes import start_ray

    session = Session(Path(sys.argv[1]))
    start_ray(cpus=8, gpus=1)
    print(json.dumps({**session.searches(), **session.resources()}))
