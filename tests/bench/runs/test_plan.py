"""`bench run` on records that are there already: the options choose which of them the table is made of."""

import csv
import re
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from filelock import FileLock

from bench.cluster import local_ray
from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.errors import UserError
from bench.records.cell_folder import CellFolder
from bench.records.files import write_json
from bench.suite.loading import load_suite
from bench.suite.methods import code_digest
from bench.suite.planning import PlannedCell, plan_cells
from bench.suite.rows import with_rows
from tests.kit.cli import assert_one_sentence, call_bench, files_below, read, write_suite
from tests.kit.without_checksums import without_checksums

pytestmark = pytest.mark.xdist_group("mlflow")


class Choice(NamedTuple):
    options: list[str]
    methods: list[str]
    seeds: int
    settings: dict[str, Any]


CHOICES = [
    Choice([], ["fedavg", "fedprox"], 2, {}),
    Choice(["--methods", "fedprox", "--seeds", "1"], ["fedprox"], 1, {}),
    Choice(["--methods", "fedprox,fedavg"], ["fedprox", "fedavg"], 2, {}),
    Choice(["--seeds", "1", "--rounds", "3"], ["fedavg", "fedprox"], 1, {"training.rounds": 3}),
    Choice(["--seeds", "1", "--set", "fedprox.mu=5"], ["fedavg", "fedprox"], 1, {"fedprox.mu": 5}),
    Choice(["--methods", "fedavgm", "--seeds", "1"], ["fedavgm"], 1, {}),
]


class Records(NamedTuple):
    suite: Path
    out: Path

    @property
    def run(self) -> Path:
        return self.out / "tiny"

    def cells(self, choice: Choice) -> list[PlannedCell]:
        suite = with_rows(load_suite(str(self.suite)), choice.methods).changed(choice.settings)
        return plan_cells(suite.model_copy(update={"seeds": choice.seeds}))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """The cells of all choices in one folder, computed without Ray."""
    folder = tmp_path_factory.mktemp("plan")
    records = Records(write_suite(folder), folder / "runs")
    for cell in {cell.cell_id: cell for choice in CHOICES for cell in records.cells(choice)}.values():
        run = CellRun(CellFolder(records.run / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()
    return records


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: " ".join(choice.options))
def test_a_table_is_made_of_the_chosen_cells_alone(records: Records, choice: Choice) -> None:
    before = _results(records)
    outcome = call_bench("run", "--suite", records.suite, "--out", records.out, *choice.options)
    assert (outcome.code, outcome.err) == (0, "")
    assert _results(records) == before, "a finished cell was touched"

    plan = read(records.run / "plan.json")
    rows = [(method, seed) for method in choice.methods for seed in range(choice.seeds)]
    assert [(cell["method"], cell["seed"]) for cell in plan["cells"]] == rows
    assert plan["set"] == choice.settings
    assert f"{len(rows)} already done, 0 to run" in outcome.out

    averages: dict[str, list[float]] = {}
    for cell in plan["cells"]:
        config = read(records.run / cell["dir"] / "config.json")
        assert (config["method"]["name"], config["seed"]) == (cell["method"], cell["seed"])
        assert config["training"]["rounds"] == choice.settings.get("training.rounds", 4)
        if cell["method"] == "fedprox":
            assert config["method"]["hyperparameters"]["mu"] == choice.settings.get("fedprox.mu", 0.01)
        final = read(records.run / cell["dir"] / "result.json")["final"]
        averages.setdefault(cell["label"], []).append(100 * final["avg"])
    shown = _averages(records)
    assert {label: seeds for label, (_, seeds) in shown.items()} == dict.fromkeys(averages, choice.seeds)
    expected = {label: fmean(values) for label, values in averages.items()}
    assert {label: average for label, (average, _) in shown.items()} == pytest.approx(expected)
    for label, values in averages.items():
        assert re.search(rf"{label} .*{fmean(values):.2f}", outcome.out)
    changes = ", ".join(f"{key} = {value}" for key, value in choice.settings.items())
    said = f"hyperparameters: suite defaults except {changes};" if changes else "suite defaults;"
    assert said in " ".join(outcome.out.split())


def test_what_an_earlier_run_had_no_time_to_log_is_logged(records: Records) -> None:
    from mlflow import MlflowClient

    outcome = call_bench("run", "--suite", records.suite, "--out", records.out)
    assert outcome.code == 0
    client = MlflowClient(tracking_uri=f"sqlite:///{records.out}/mlflow.db")
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    logged = [run.data.tags["cell"] for run in runs if "cell" in run.data.tags]
    assert len(logged) == len(set(logged))
    assert set(logged) >= {cell.cell_id for cell in records.cells(CHOICES[0])}


@pytest.mark.parametrize(
    ("options", "begun"),
    [
        ([], False),
        (["--rounds", "5", "--dry-run"], False),
        (["--rounds", "5", "--address", "nowhere:1"], False),
        (["--rounds", "5"], True),
    ],
    ids=["nothing is missing", "nothing shall run", "a cluster is to be used", "it is needed"],
)
def test_ray_is_begun_only_where_this_machine_needs_it(
    records: Records, monkeypatch: pytest.MonkeyPatch, options: list[str], begun: bool
) -> None:
    begins: list[str] = []

    def begin() -> None:
        begins.append("ray")
        raise UserError("far enough")

    monkeypatch.setattr(local_ray, "begin", begin)
    call_bench("run", "--suite", records.suite, "--out", records.out, *options)
    assert bool(begins) == begun


def test_the_run_is_listed_and_its_cells_are_shown(records: Records) -> None:
    call_bench("run", "--suite", records.suite, "--out", records.out)
    listed = call_bench("list", "runs", "--runs", records.out)
    assert "Built-in digits, four clients: 4 of 4 cells done" in listed.out
    cell = records.cells(CHOICES[0])[0]
    shown = call_bench("show", "cell", cell.cell_id, "--runs", records.out)
    assert shown.code == 0
    assert f'"cell": "{cell.cell_id}"' in shown.out


def test_cells_of_a_method_that_was_edited_since_are_told(records: Records, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    shutil.copytree(records.out, out)
    without_checksums(out)
    command = ["run", "--suite", records.suite, "--out", out, "--dry-run"]
    assert "code was changed" not in call_bench(*command).out
    for cell in records.cells(CHOICES[0]):
        file = out / "tiny" / cell.directory / "result.json"
        result = read(file)
        if cell.method == "fedprox":
            result["provenance"]["method_code"] = code_digest("fedavg")
        elif cell.seed == 0:
            del result["provenance"]["method_code"]  # as older records are
        write_json(file, result)
    said = call_bench(*command).out
    assert "note: 2 cells of fedprox were computed before its code was changed" in said
    assert "cells of fedavg" not in said


def test_the_code_of_a_wrapped_method_is_that_of_both() -> None:
    names = ["fedavg", "scaffold", "ggeur+fedavg", "ggeur+scaffold"]
    assert len({code_digest(name) for name in names}) == 4
    assert code_digest("ggeur+scaffold") == code_digest("ggeur+scaffold")


def test_the_code_of_a_method_in_two_wrappers_is_that_of_all_three() -> None:
    names = ["dp+ggeur+fedavg", "compressed+ggeur+fedavg", "compressed+ggeur+fedprox", "compressed+fedprox"]
    assert len({code_digest(name) for name in names}) == 4


def test_the_code_of_a_method_in_a_folder_is_that_of_all_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Path.read_bytes

    def noted(file: Path) -> bytes:
        read.append(file.name)
        return real(file)

    monkeypatch.setattr(Path, "read_bytes", noted)
    code_digest("ggeur+fedavg")
    assert {"method.py", "exchanges.py", "lazy_samples.py", "as_published.py", "fedavg.py"} <= {*read}


def test_a_second_driver_is_kept_out(records: Records) -> None:
    arguments = ["run", "--suite", records.suite, "--out", records.out]
    assert call_bench(*arguments).code == 0
    with FileLock(records.out / ".tiny.lock"):
        assert_one_sentence(call_bench(*arguments), "another `bench run` is running", str(records.run))
    assert call_bench(*arguments).code == 0


def _results(records: Records) -> dict[str, tuple[bytes, int]]:
    files = files_below(records.run)
    return {name: file for name, file in files.items() if name.endswith(("result.json", "rounds.jsonl"))}


def _averages(records: Records) -> dict[str, tuple[float, int]]:
    """Row of the table → AVG and the number of seeds it is the mean of."""
    with (records.run / "tables" / "tiny.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["column"] == "AVG"]
    return {row["label"]: (float(row["mean"]), int(row["n"])) for row in rows}
