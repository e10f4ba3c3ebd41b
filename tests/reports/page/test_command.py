"""The commands that compute cells again."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import Run, load_run
from bench.records.run_folder import RunFolder
from bench.records.schema import PlanRecord, SuiteRecord, TableRecord
from bench.suite.loading import load_suite
from bench.suite.model import MethodEntry, Suite
from bench.suite.overrides import parse_assignment
from bench.suite.planning import plan_cells
from bench.suite.rows import with_rows
from reports.page.command import rerun_commands
from tests.kit.run_folders import Planned, write_run


def planned_run(
    folder: Path, suite: Suite, settings: dict[str, Any], tuning: dict[str, Any] | None = None
) -> Run:
    """A run of which there is only the plan."""
    plan = PlanRecord(
        suite=SuiteRecord(name=suite.suite, version=suite.version),
        table=TableRecord(kind="domains"),
        domains=("mnist",),
        settings=settings,
        tuning=tuning,
        cells=tuple(cell.as_record() for cell in plan_cells(suite)),
    )
    RunFolder(folder).write_plan(plan)
    return load_run(folder)


def three_seeds(*methods: str) -> Suite:
    return with_rows(load_suite("quickstart"), methods).model_copy(update={"seeds": 3})


def planned_by(command: str) -> set[str]:
    """The cells that a command would run, by the planner itself."""
    words = shlex.split(command)
    options = list(zip(words[2::2], words[3::2], strict=True))
    given = dict(options)
    assert words[:2] == ["bench", "run"] and set(given) <= {
        "--suite",
        "--methods",
        "--seeds",
        "--set",
        "--out",
    }
    suite = with_rows(load_suite(given["--suite"]), [given["--methods"]])
    suite = suite.model_copy(update={"seeds": int(given["--seeds"])})
    changes = dict(parse_assignment(value) for option, value in options if option == "--set")
    return {cell.cell_id for cell in plan_cells(suite.changed(changes) if changes else suite)}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"training.rounds": 3, "fedlsa.lam": 1e-05, "training.optimiser": {"name": "sgd", "lr": 0.5}},
    ],
    ids=["as it is", "changed"],
)
def test_the_command_runs_the_cell_again(tmp_path: Path, settings: dict[str, Any]) -> None:
    suite = three_seeds("fedavg", "fedlsa")
    run = planned_run(tmp_path, suite.changed(settings) if settings else suite, settings)
    assert len(run.cells) == 6
    for record, command in zip(run.cells, rerun_commands(run), strict=True):
        assert record.cell_id in planned_by(command)


@pytest.mark.parametrize(
    "settings",
    [{}, {"training.optimiser.momentum": 0.5, "fedlsa.tau": 0.25}],
    ids=["as it is", "changed"],
)
def test_the_command_of_a_tuned_cell_has_what_was_chosen(tmp_path: Path, settings: dict[str, Any]) -> None:
    chosen = {"fedavg": {"optimiser.lr": 0.3}, "fedlsa": {"lam": 1e-05, "tau": 0.5}}
    tuning = {"trials": 4, "methods": {method: {"set": own} for method, own in chosen.items()}}
    suite = three_seeds("fedavg", "fedlsa", "fedprox")
    tuned = {f"{method}.{key}": value for method, own in chosen.items() for key, value in own.items()}
    suite = suite.changed(tuned)
    run = planned_run(tmp_path, suite.changed(settings) if settings else suite, settings, tuning)
    commands = rerun_commands(run)
    for record, command in zip(run.cells, commands, strict=True):
        assert record.cell_id in planned_by(command)
    assert "fedlsa.lam=1.0e-05" in commands[3] and "fedavg" not in commands[3]


def test_the_command_names_the_row_where_a_method_has_several_and_has_the_swept_values(
    tmp_path: Path,
) -> None:
    rows: list[str | MethodEntry] = [
        "fedavg",
        MethodEntry(name="fedavg", label="FedAvg (fast)", set={"weighting": "uniform"}),
        "fedprox",
    ]
    suite = with_rows(load_suite("quickstart"), rows)
    sweep = {"fedprox.mu": [0.1, 1.0], "FedAvg (fast).optimiser.lr": [0.1, 0.2], "partition.beta": [0.1, 0.5]}
    run = planned_run(tmp_path, suite.model_copy(update={"seeds": 1, "sweep": (sweep,)}), {})
    commands = rerun_commands(run)
    assert "--methods 'FedAvg (fast)'" in commands[1] and "--methods FedAvg " in commands[0]
    for record, command in zip(run.cells, commands, strict=True):
        if record.label.startswith("FedAvg (fast)"):  # a row that the shipped suite does not have
            assert "--set 'FedAvg (fast).optimiser.lr=" in command
        else:
            assert record.cell_id in planned_by(command), command


def test_a_record_of_tuning_without_values_changes_no_command(tmp_path: Path) -> None:
    cells = [Planned("fedavg", 0, (0.5, 0.5))]
    recorded: list[Any] = [None, {}, {"fedavg": {}}, {"fedavg": 4}]
    for number, methods in enumerate(recorded):
        run = write_run(tmp_path / str(number), cells, tuning={"trials": 4, "methods": methods})
        expected = "bench run --suite quickstart --methods fedavg --seeds 1 --out rerun"
        assert rerun_commands(load_run(run)) == [expected]
