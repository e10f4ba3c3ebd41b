"""`--tuned both`: tuned rows and default rows of every method in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli.options import with_values
from bench.errors import UserError
from bench.records.reader import load_run
from bench.runs.plan import plan_of
from bench.runs.request import RunRequest
from reports.page.command import rerun_commands
from reports.report import Report
from tests.kit.cli import assert_one_sentence, call_bench, write_suite
from tests.kit.studies import compute, write_chosen

CHOSEN = {"fedavg": {"optimiser.lr": 0.1}, "fedprox": {}}


@pytest.fixture
def request_both(tmp_path: Path) -> RunRequest:
    suite = write_suite(tmp_path, seeds=1)
    write_chosen(tmp_path / "tuned", suite, CHOSEN)
    return RunRequest(
        suite=str(suite), tuned="both", tuned_dir=tmp_path / "tuned", out=tmp_path / "runs", rounds=1
    )


def test_default_rows_stand_behind_tuned_ones_where_they_differ(request_both: RunRequest) -> None:
    rows = {cell.label: cell.config for cell in plan_of(request_both).cells}
    assert list(rows) == ["FedAvg", "FedAvg (default)", "FedProx"]
    assert rows["FedAvg"].method.hyperparameters["optimiser"]["lr"] == 0.1
    assert rows["FedAvg (default)"].method.hyperparameters["optimiser"] is None


def test_the_cells_are_those_of_the_runs_by_themselves(request_both: RunRequest) -> None:
    def ids(tuned: bool) -> set[str]:
        request = RunRequest(
            suite=request_both.suite,
            tuned=tuned,
            tuned_dir=request_both.tuned_dir,
            out=request_both.out,
            rounds=1,
        )
        return {cell.cell_id for cell in plan_of(request).cells}

    assert {cell.cell_id for cell in plan_of(request_both).cells} == ids(True) | ids(False)


def test_an_override_that_makes_rows_equal_leaves_one(request_both: RunRequest) -> None:
    request = RunRequest(
        suite=request_both.suite,
        tuned="both",
        tuned_dir=request_both.tuned_dir,
        overrides={"fedavg.optimiser.lr": 0.2},
    )
    assert [cell.label for cell in plan_of(request).cells] == ["FedAvg", "FedProx"]


def test_only_tuned_rows_are_said_to_be_tuned(request_both: RunRequest) -> None:
    run = load_run(compute(plan_of(request_both)))
    said = {cell.label: cell.tuning is not None for cell in run.cells}
    assert said == {"FedAvg": True, "FedAvg (default)": False, "FedProx": True}
    caption = Report(run).tables[0].caption
    assert "hyperparameters: tuned (4 trials per method" in caption
    assert "suite defaults in rows marked (default)" in caption
    commands = dict(zip(said, rerun_commands(run), strict=True))
    assert "optimiser.lr" in commands["FedAvg"] and "optimiser.lr" not in commands["FedAvg (default)"]


def test_the_command_line_takes_the_option_with_and_without_a_value(request_both: RunRequest) -> None:
    base = ["run", "--suite", request_both.suite, "--tuned-dir", request_both.tuned_dir]
    base += ["--out", request_both.out, "--dry-run"]
    assert "cells: 1 (" in call_bench(*base, "--methods", "fedavg", "--tuned").out
    assert "cells: 2 (" in call_bench(*base, "--methods", "fedavg", "--tuned", "both").out
    assert "methods: FedAvg, FedAvg (default), FedProx" in call_bench(*base, "--tuned=both").out
    assert_one_sentence(call_bench(*base, "--tuned=most"), "--tuned most", "--tuned both")


def test_a_value_is_put_behind_the_option_only_where_it_stands_alone() -> None:
    def given(*args: str) -> list[str]:
        return with_values(args, "--tuned", "yes", ("yes", "both"))

    assert given("--tuned", "--dry-run") == ["--tuned=yes", "--dry-run"]
    assert given("--tuned", "both") == ["--tuned", "both"]
    assert given("--out", "x", "--tuned") == ["--out", "x", "--tuned=yes"]
    assert given() == []


def test_python_refuses_another_value() -> None:
    with pytest.raises(UserError, match="--tuned most"):
        RunRequest(suite="quickstart", tuned="most")  # type: ignore[arg-type]
