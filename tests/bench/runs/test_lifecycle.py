"""The life of one run: killed with its machine, taken up again, a cell fails, is mended, all is complete.

Every command is a real one, through Ray Tune, with a method that another package brings along.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.config.cell import CellConfig
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from tests.kit.cli import (
    PRINTING_MODULES,
    TINY,
    Outcome,
    environment,
    files_below,
    kill_session,
    read,
    result_of,
    rounds_of,
    run_bench,
    session_members,
    start_bench,
    wait_until,
    write_suite,
)

pytestmark = pytest.mark.xdist_group("clusters")

ROUNDS = 40
EVALUATED = [20, 36, 37, 38, 39, 40]
FRAGILE = '''
"""Fragile: FedAvg whose server counts its rounds, and breaks down in one of them."""

from pathlib import Path

import torch

from methods.fedavg import FedAvg


class Fragile(FedAvg):
    label = "Fragile"

    def server(self, task):
        return super().server(task) | {"rounds": torch.zeros(())}

    def aggregate(self, task, server, replies):
        rounds = server["rounds"] + 1
        if rounds == BREAKS_IN:
            with Path(__file__).with_name("attempts").open("a") as attempts:
                attempts.write("x")
            raise RuntimeError("the server\\nhas broken down")
        return super().aggregate(task, server, replies) | {"rounds": rounds}
'''


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


@dataclass(frozen=True)
class Bench:
    """A command, and the folder it works in."""

    package: Package
    arguments: list[object]
    run: Path

    def start(self, *more: object) -> subprocess.Popen[str]:
        return start_bench(*self.arguments, *more, PYTHONPATH=str(self.package.folder))

    def finish(self, *more: object) -> Result:
        outcome = run_bench(*self.arguments, *more, PYTHONPATH=str(self.package.folder))
        return self.result(outcome)

    def result(self, outcome: Outcome) -> Result:
        return Result(outcome, self.run, files_below(self.run), self.package.attempts)


@dataclass(frozen=True)
class Result:
    """What a command said and left behind."""

    outcome: Outcome
    run: Path
    files: dict[str, tuple[bytes, int]]
    attempts: int

    @property
    def cells(self) -> dict[str, Path]:
        """`method seed` → folder, as in the plan."""
        plan = json.loads(self.files["plan.json"][0])["cells"]
        return {f"{cell['method']} {cell['seed']}": self.run / cell["dir"] for cell in plan}

    def having(self, name: str) -> set[str]:
        """The cells that had such a file."""
        found = (re.fullmatch(rf"cells/(\w+)-s(\d+)-\w+/{name}", file) for file in self.files)
        return {f"{match[1]} {match[2]}" for match in found if match}


def configuration(cell: Path) -> CellConfig:
    found = CellFolder(cell).config()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("lifecycle")
    suite = write_suite(
        folder,
        model={"name": "cnn", "channels": [2, 3], "features": 8, "embedding": 4},
        training={
            "rounds": ROUNDS,
            "epochs": 1,
            "batch_size": 10,
            "optimiser": {"name": "sgd", "lr": 0.05},
        },
        evaluation={"every": EVALUATED[0]},
        methods=["scaffold", "fragile"],
    )
    arguments = ["run", "--suite", suite, "--out", folder / "runs", "--checkpoint-every", "0.05"]
    return Bench(Package(folder / "site"), arguments, folder / "runs" / "tiny")


@pytest.fixture(scope="module")
def resumed(bench: Bench) -> Result:
    """Killed with all its processes in the middle of its first cell, then the same command once more."""
    bench.package.release(breaks_in=2)
    command = ["--seeds", "1", "--max-concurrent", "1"]

    def in_the_middle() -> bool:
        return any(bench.run.glob("cells/scaffold-*/checkpoint/round-*"))

    process = bench.start(*command)
    wait_until(lambda: in_the_middle() or process.poll() is not None, seconds=180)
    kill_session(process)
    assert in_the_middle(), process.communicate()
    return bench.finish(*command)


@pytest.fixture(scope="module")
def completed(bench: Bench, resumed: Result) -> Result:
    """The method mended, one seed more, the clients on Ray actors."""
    bench.package.release(breaks_in=None)
    return bench.finish("--executor", "ray", "--hosts", "2", "--cpus-per-trial", "0.5")


@pytest.fixture(scope="module")
def undisturbed(bench: Bench, completed: Result, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same cells in this process, without Ray, Tune or interruption, in folders of their own."""
    root = tmp_path_factory.mktemp("undisturbed")
    folders = {name: root / cell.name for name, cell in completed.cells.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(bench.package.folder)
        for name, cell in completed.cells.items():
            made_by = read(cell / "result.json")["provenance"]["commit"]
            conditions = Conditions(executor="loop", commit=made_by)
            run = CellRun(CellFolder(folders[name]), configuration(cell), conditions)
            while not run.done:
                run.advance()
    return folders


def assert_the_same_records(cell: Path, reference: Path) -> None:
    assert rounds_of(cell) == rounds_of(reference)
    result, expected = result_of(cell), result_of(reference)
    for provenance in (result["provenance"], expected["provenance"]):
        del provenance["executor"]
        provenance.pop("contract", None)  # which the driver knows, not the cell
    assert result == expected


def test_a_kill_leaves_no_trace_in_the_records(resumed: Result, undisturbed: dict[str, Path]) -> None:
    assert_the_same_records(resumed.cells["scaffold 0"], undisturbed["scaffold 0"])


@pytest.mark.parametrize("cell", ["scaffold 1", "fragile 0", "fragile 1"])
def test_actors_leave_no_trace_in_the_records(
    completed: Result, undisturbed: dict[str, Path], cell: str
) -> None:
    assert read(completed.cells[cell] / "result.json")["provenance"]["executor"] == "ray"
    assert read(undisturbed[cell] / "result.json")["provenance"]["executor"] == "loop"
    assert_the_same_records(completed.cells[cell], undisturbed[cell])


def test_a_failed_cell_costs_the_exit_code_and_not_the_others(resumed: Result) -> None:
    assert (resumed.outcome.code, resumed.outcome.err) == (1, "")
    assert resumed.having("result.json") == {"scaffold 0"}
    assert resumed.having("error.json") == {"fragile 0"}
    assert "1 of 2 cells failed" in resumed.outcome.out


def test_a_failed_cell_was_tried_twice(resumed: Result) -> None:
    assert resumed.attempts == 2


def test_a_failed_cell_says_why(resumed: Result) -> None:
    (name,) = [name for name in resumed.files if name.endswith("error.json")]
    error = json.loads(resumed.files[name][0])
    place = r"\(fragile_methods\.py, line \d+\)"
    assert re.fullmatch(f"RuntimeError: the server has broken down {place}", error["error"])
    assert error["traceback"].startswith("Traceback (most recent call last)")
    assert "in aggregate" in error["traceback"]


def test_a_failed_cell_is_a_dash_with_a_footnote(resumed: Result) -> None:
    for text in (resumed.files["tables/tiny.md"][0].decode(), resumed.outcome.out):
        assert re.search(r"Fragile[ |]+–[ |]+–[ |]+–[ |]+–", text)
        assert "Failed: Fragile seed 0: RuntimeError: the server has broken down" in text
        assert re.search(r"SCAFFOLD[^\d]*?\d+\.\d\d", text)
    assert "FAILED Fragile seed 0: RuntimeError: the server has broken down" in resumed.outcome.out


def test_the_mended_run_is_complete_and_nothing_else_is_left(completed: Result) -> None:
    assert (completed.outcome.code, completed.outcome.err) == (0, "")
    assert completed.having("result.json") == set(completed.cells)
    assert set(completed.cells) == {"scaffold 0", "scaffold 1", "fragile 0", "fragile 1"}
    for cell in completed.cells.values():
        names = {entry.name for entry in cell.iterdir()}
        assert names == {"config.json", "rounds.jsonl", "result.json", "predictions.npz", "mlflow.json"}
    names = {entry.name for entry in completed.run.iterdir()}
    assert names == {
        "plan.json",
        "partition.json",
        "cells",
        "tables",
        "figures",
        "report.html",
        "mlflow.json",
    }


def test_only_what_was_missing_is_computed(resumed: Result, completed: Result) -> None:
    folder = resumed.cells["scaffold 0"].relative_to(completed.run)
    for name in ("config.json", "rounds.jsonl", "result.json"):
        assert completed.files[f"{folder}/{name}"] == resumed.files[f"{folder}/{name}"]
    assert "cells: 4 (2 methods × 2 seeds), 1 already done, 3 to run" in completed.outcome.out
    said = re.findall(r"done (\w+ seed \d) AVG \d+\.\d", completed.outcome.out)
    assert sorted(said) == ["Fragile seed 0", "Fragile seed 1", "SCAFFOLD seed 1"]


def test_every_round_is_recorded_once(completed: Result) -> None:
    for cell in completed.cells.values():
        lines = rounds_of(cell)
        assert [line["round"] for line in lines] == list(range(1, ROUNDS + 1))
        assert [line["round"] for line in lines if "test" in line] == EVALUATED
        assert read(cell / "result.json")["final"]["test"] == lines[-1]["test"]
        assert read(cell / "config.json")["cell"] == cell.name.rpartition("-")[2]


def test_table_files_and_where_to_go_on_are_told(completed: Result) -> None:
    out = completed.outcome.out
    assert "executor: ray (asked for with --executor)" in out
    assert re.search(r"SCAFFOLD( +\d+\.\d\d ±\d+\.\d\d(?: ?[≈*])*){4}", out)
    assert re.search(r"Fragile[ ,↑‡]*( +\d+\.\d\d ±\d+\.\d\d(?: ?[≈*])*){4}", out)
    assert "–" not in completed.files["tables/tiny.md"][0].decode()
    tables = [f"tables/tiny.{suffix}" for suffix in ("md", "tex", "csv")]
    for name in [*tables, "figures/convergence.png", "figures/convergence.pdf", "report.html"]:
        assert completed.files[name][0]
        assert f"  {completed.run / name}\n" in out
    store = re.escape(f"sqlite:///{completed.run.parent}/mlflow.db")
    assert re.search(rf"^explore: \S*mlflow ui --host 127.0.0.1 --backend-store-uri {store}$", out, re.M)


def test_mlflow_has_one_run_a_cell_and_one_for_the_suite(completed: Result) -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{completed.run.parent}/mlflow.db")
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    by_cell = {run.data.tags["cell"]: run for run in runs if "cell" in run.data.tags}
    (suite_run,) = [run for run in runs if "suite_run" in run.data.tags]
    assert len(runs) == 1 + len(by_cell) == 1 + len(completed.cells)
    assert {run.info.status for run in runs} == {"FINISHED"}
    names = {f"{label} s{seed}" for label in ("SCAFFOLD", "Fragile") for seed in (0, 1)}
    assert {run.info.run_name for run in by_cell.values()} == names
    files = {file.path for file in client.list_artifacts(suite_run.info.run_id)}
    assert files == {"tables", "figures", "report.html"}
    for cell in completed.cells.values():
        run = by_cell[cell.name.rpartition("-")[2]]
        assert "error" not in run.data.tags
        assert run.data.tags["mlflow.parentRunId"] == suite_run.info.run_id
        assert run.data.params["training.rounds"] == str(ROUNDS)
        assert run.data.metrics["final_avg"] == pytest.approx(read(cell / "result.json")["final"]["avg"])
        history = client.get_metric_history(run.info.run_id, "bytes_up")
        assert sorted(point.step for point in history) == list(range(1, ROUNDS + 1))


def test_with_nothing_to_do_the_table_comes_without_ray_and_mlflow(bench: Bench, completed: Result) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINTING_MODULES, *map(str, bench.arguments)],
        env=environment(PYTHONPATH=str(bench.package.folder)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert "4 already done, 0 to run" in done.stdout
    assert re.search(r"Fragile[ ,↑‡]*( +\d+\.\d\d ±\d+\.\d\d(?: ?[≈*])*){4}", done.stdout)
    assert "explore: " in done.stdout
    assert not {"ray", "mlflow"} & set(done.stderr.split())
    after = files_below(bench.run / "cells")
    assert after == {
        name.removeprefix("cells/"): file
        for name, file in completed.files.items()
        if name.startswith("cells/")
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "stop",
    [lambda driver: os.killpg(driver, signal.SIGINT), lambda driver: os.kill(driver, signal.SIGTERM)],
    ids=["Ctrl-C", "SIGTERM as a scheduler sends it"],
)
def test_a_request_to_stop_ends_everything_and_says_how_to_go_on(
    tmp_path: Path, stop: Callable[[int], None]
) -> None:
    training = TINY["training"] | {"rounds": 100_000}
    out = tmp_path / "runs"
    process = start_bench(
        "run", "--suite", write_suite(tmp_path, training=training), "--out", out, "--checkpoint-every", "1"
    )
    try:
        wait_until(lambda: any(out.glob("*/cells/*/checkpoint/round-*")) or process.poll() is not None, 180)
        stop(process.pid)
        text, errors = process.communicate(timeout=60)
        assert wait_until(lambda: not session_members(process.pid), seconds=30), "processes are left"
    finally:
        kill_session(process)
    assert process.returncode == 130
    assert "run the same command again to resume" in text
    assert errors == ""
    assert any(out.glob("*/cells/*/checkpoint/round-*"))
