"""One folder of a run over its life: a cell fails, is mended, the machine goes down, the run is completed.

The runs are real ones, through Ray Tune and with a method that another package brings along.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_runner import (
    Outcome,
    environment,
    files_below,
    kill_session,
    read,
    result_of,
    rounds_of,
    run_bench,
    start_bench,
    wait_until,
    write_suite,
)

from bench.cells import CellRun, Conditions
from bench.provenance import commit

pytestmark = pytest.mark.xdist_group("ray")

ROUNDS = 40
EVALUATED = [15, 30, 40]
FRAGILE = '''
"""Fragile: FedAvg whose server counts its rounds, and breaks down in one of them."""

from pathlib import Path

import torch

from methods.fedavg import FedAvg


class Fragile(FedAvg):
    label = "Fragile"

    def server(self, task):
        return super().server(task) | {"rounds": torch.zeros(())}

    def round(self, task):
        base = super().round(task)

        def aggregate(server, replies):
            rounds = server["rounds"] + 1
            if rounds == BREAKS_IN:
                with Path(__file__).with_name("attempts").open("a") as attempts:
                    attempts.write("x")
                raise RuntimeError("the server\\nhas broken down")
            return base.aggregate(server, replies) | {"rounds": rounds}

        return base._replace(aggregate=aggregate)
'''


@dataclass(frozen=True)
class Run:
    """A command and what it left behind."""

    outcome: Outcome
    folder: Path
    files: dict[str, tuple[bytes, int]]

    @property
    def cells(self) -> dict[str, Path]:
        """`method seed` → folder, as planned."""
        plan = read(self.folder / "plan.json")["cells"]
        return {f"{cell['method']} {cell['seed']}": self.folder / cell["dir"] for cell in plan}

    def written(self, name: str) -> set[str]:
        """The cells that had such a file when the command ended."""
        found = (re.fullmatch(rf"cells/(\w+)-s(\d+)-\w+/{name}", file) for file in self.files)
        return {f"{match[1]} {match[2]}" for match in found if match}


class Package:
    """An installed package of somebody else, with one method."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        about = folder / "fragile_methods-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile-methods\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[bench.methods]\nfragile = fragile_methods:Fragile\n")

    def release(self, breaks_in: int | None) -> None:
        (self.folder / "fragile_methods.py").write_text(FRAGILE + f"\n\nBREAKS_IN = {breaks_in}\n")

    @property
    def attempts(self) -> int:
        file = self.folder / "attempts"
        return len(file.read_text()) if file.exists() else 0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lifecycle")


@pytest.fixture(scope="module")
def package(workspace: Path) -> Package:
    return Package(workspace / "site")


@pytest.fixture(scope="module")
def command(workspace: Path) -> list[object]:
    suite = write_suite(
        workspace,
        model={"name": "cnn", "channels": [2, 3], "features": 8, "embedding": 4},
        training={
            "rounds": ROUNDS,
            "epochs": 1,
            "batch_size": 10,
            "optimiser": {"name": "sgd", "lr": 0.05},
        },
        evaluation={"every": EVALUATED[0], "personal": True},
        methods=["scaffold", "fragile"],
    )
    return ["run", "--suite", suite, "--out", workspace / "runs", "--checkpoint-every", "0.05"]


@pytest.fixture(scope="module")
def failed(command: list[object], workspace: Path, package: Package) -> Run:
    """With one seed, while the method of the other package is broken."""
    package.release(breaks_in=2)
    outcome = run_bench(*command, "--seeds", "1", "--max-concurrent", "1", PYTHONPATH=str(package.folder))
    return _run(outcome, workspace)


@pytest.fixture(scope="module")
def resumed(failed: Run, command: list[object], workspace: Path, package: Package) -> Run:
    """With two seeds, killed with all its processes in the middle of a cell, then completed on Ray hosts."""
    package.release(breaks_in=None)

    def in_the_middle() -> bool:
        return any(failed.folder.glob("cells/*/checkpoint/round-*"))

    process = start_bench(*command, "--max-concurrent", "1", PYTHONPATH=str(package.folder))
    wait_until(lambda: in_the_middle() or process.poll() is not None, 180)
    kill_session(process)
    assert in_the_middle(), process.communicate()
    on_hosts = ["--executor", "ray", "--hosts", "2", "--cpus-per-trial", "0.5"]
    return _run(run_bench(*command, *on_hosts, PYTHONPATH=str(package.folder)), workspace)


def _run(outcome: Outcome, workspace: Path) -> Run:
    folder = workspace / "runs" / "tiny"
    return Run(outcome, folder, files_below(folder))


def test_a_failed_cell_costs_the_exit_code_and_not_the_others(failed: Run) -> None:
    assert failed.outcome.code == 1
    assert failed.outcome.err == ""
    assert failed.written("result.json") == {"scaffold 0"}
    assert failed.written("error.json") == {"fragile 0"}
    assert "1 of 2 cells failed" in failed.outcome.out


def test_a_failed_cell_is_tried_twice(failed: Run, package: Package) -> None:
    assert package.attempts == 2


def test_a_failed_cell_says_why(failed: Run) -> None:
    (error,) = [
        json.loads(content) for name, (content, _) in failed.files.items() if name.endswith("error.json")
    ]
    assert error["error"] == "RuntimeError: the server has broken down"
    assert error["traceback"].startswith("Traceback (most recent call last)")
    assert "in aggregate" in error["traceback"]


def test_a_failed_cell_is_a_dash_with_a_footnote(failed: Run) -> None:
    table = failed.files["tables/tiny.md"][0].decode()
    for text in (table, failed.outcome.out):
        assert re.search(r"Fragile[ |]+–[ |]+–[ |]+–[ |]+–", text)
        assert "Failed: Fragile seed 0: RuntimeError: the server has broken down" in text
        assert re.search(r"SCAFFOLD[ |*]+\d+\.\d\d", text)
    assert "FAILED Fragile seed 0: RuntimeError: the server has broken down" in failed.outcome.out


def test_the_mended_and_resumed_run_succeeds(resumed: Run) -> None:
    assert (resumed.outcome.code, resumed.outcome.err) == (0, "")
    expected = {"scaffold 0", "scaffold 1", "fragile 0", "fragile 1"}
    assert set(resumed.cells) == expected
    assert resumed.written("config.json") == expected
    assert resumed.written("result.json") == expected
    assert resumed.written("error.json") == set()
    allowed = {"config.json", "rounds.jsonl", "result.json", "mlflow.json"}
    for cell in resumed.cells.values():
        assert {entry.name for entry in cell.iterdir()} == allowed
    left = {entry.name for entry in resumed.folder.iterdir()}
    assert left == {"plan.json", "cells", "tables", "figures", "mlflow.json"}


def test_a_finished_cell_is_not_computed_again(failed: Run, resumed: Run) -> None:
    (cell,) = [name for name in failed.files if name.endswith("result.json")]
    folder = cell.removesuffix("result.json")
    for name in ("config.json", "rounds.jsonl", "result.json"):
        assert resumed.files[folder + name] == failed.files[folder + name]


def test_every_round_of_every_cell_is_recorded_once(resumed: Run) -> None:
    for cell in resumed.cells.values():
        lines = rounds_of(cell)
        assert [line["round"] for line in lines] == list(range(1, ROUNDS + 1))
        assert [line["round"] for line in lines if "test" in line] == EVALUATED
        assert read(cell / "result.json")["final"]["test"] == lines[-1]["test"]
        assert read(cell / "config.json")["cell"] == cell.name.rpartition("-")[2]


@pytest.fixture(scope="module")
def undisturbed(resumed: Run, package: Package, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same cells in this process, without Ray, Tune or interruption, in folders of their own."""
    root = tmp_path_factory.mktemp("undisturbed")
    folders = {name: root / cell.name for name, cell in resumed.cells.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package.folder)
        for name, cell in resumed.cells.items():
            conditions = Conditions(executor="loop", commit=commit())
            run = CellRun(folders[name], read(cell / "config.json"), conditions)
            while not run.done:
                run.advance()
    return folders


def test_neither_the_kill_nor_the_executor_can_be_seen_in_the_records(
    resumed: Run, undisturbed: dict[str, Path]
) -> None:
    """Begun by the loop, killed, completed by hosts on Ray; or in one go in one process: the same records."""
    for name, cell in resumed.cells.items():
        reference = undisturbed[name]
        assert rounds_of(cell) == rounds_of(reference), name
        result, expected = result_of(cell), result_of(reference)
        executor = result["provenance"].pop("executor")
        assert executor == ("loop" if name == "scaffold 0" else "ray")
        assert expected["provenance"].pop("executor") == "loop"
        assert result == expected, name


def test_table_figures_and_where_to_go_on_are_told(resumed: Run, workspace: Path) -> None:
    out = resumed.outcome.out
    assert re.search(r"SCAFFOLD( +\d+\.\d\d ±\d+\.\d\d){4}", out)
    assert re.search(r"Fragile( +\d+\.\d\d ±\d+\.\d\d){4}", out)
    assert "–" not in resumed.files["tables/tiny.md"][0].decode()
    expected = [f"tables/tiny.{suffix}" for suffix in ("md", "tex", "csv")]
    expected += [f"figures/convergence.{suffix}" for suffix in ("png", "pdf")]
    for name in expected:
        assert resumed.files[name][0]
        assert f"  {resumed.folder / name}\n" in out
    assert re.search(
        rf"^explore: \S*mlflow ui --backend-store-uri sqlite:///{workspace}/runs/mlflow\.db$", out, re.M
    )


def test_the_last_lines_say_what_was_run(resumed: Run) -> None:
    assert "cells: 4 (2 methods × 2 seeds), 1 already done, 3 to run" in resumed.outcome.out
    assert "executor: ray (asked for with --executor)" in resumed.outcome.out
    for name in ("SCAFFOLD seed 1", "Fragile seed 0", "Fragile seed 1"):
        assert len(re.findall(rf"done {name} AVG \d+\.\d", resumed.outcome.out)) == 1


def test_mlflow_has_one_run_a_cell_and_one_for_the_suite(resumed: Run, workspace: Path) -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{workspace}/runs/mlflow.db")
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    suite_runs = [run for run in runs if "suite_run" in run.data.tags]
    by_cell = {run.data.tags["cell"]: run for run in runs if "cell" in run.data.tags}
    assert len(runs) == len(suite_runs) + len(by_cell) == 1 + 4
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert {file.path for file in client.list_artifacts(suite_runs[0].info.run_id)} == {"tables", "figures"}
    for cell in resumed.cells.values():
        run = by_cell[cell.name.rpartition("-")[2]]
        assert "error" not in run.data.tags
        assert run.data.params["training.rounds"] == str(ROUNDS)
        assert run.data.metrics["final_avg"] == pytest.approx(read(cell / "result.json")["final"]["avg"])
        history = client.get_metric_history(run.info.run_id, "bytes_up")
        assert sorted(point.step for point in history) == list(range(1, ROUNDS + 1))


@pytest.fixture(scope="module")
def repeated(resumed: Run, command: list[object], workspace: Path, package: Package) -> tuple[Run, set[str]]:
    """The same once more, with the modules that it had loaded at its end."""
    code = (
        "import atexit, sys\n"
        "from bench.cli import main\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command)],
        env=environment(PYTHONPATH=str(package.folder)),
        capture_output=True,
        text=True,
    )
    outcome = Outcome(done.returncode, done.stdout, "")
    return _run(outcome, workspace), set(done.stderr.split())


def test_a_run_with_nothing_to_do_computes_nothing_and_shows_the_table(
    resumed: Run, repeated: tuple[Run, set[str]]
) -> None:
    again, modules = repeated
    assert again.outcome.code == 0
    assert "4 already done, 0 to run" in again.outcome.out
    assert re.search(r"Fragile( +\d+\.\d\d ±\d+\.\d\d){4}", again.outcome.out)
    assert "explore: " in again.outcome.out
    cells = {name: file for name, file in resumed.files.items() if name.startswith("cells/")}
    assert {name: file for name, file in again.files.items() if name.startswith("cells/")} == cells
    assert not {"ray", "mlflow"} & modules
