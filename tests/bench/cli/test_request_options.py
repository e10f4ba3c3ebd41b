"""Options of commands and keywords of functions come from the fields of requests, and from nowhere else."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import bench
from bench.cli.app import app
from bench.cli.request_options import command_line
from bench.engine.executors import EXECUTORS
from bench.errors import UserError
from bench.request import Declared, Request, declared
from bench.results.request import SubmitRequest, VerifyRequest
from bench.runs.request import RunRequest
from bench.search.request import TuneRequest
from bench.studies.request import StudyRequest
from tests.kit.cli import assert_one_sentence, call_bench

REQUESTS: dict[str, type[Request]] = {
    "run": RunRequest,
    "tune": TuneRequest,
    "study": StudyRequest,
    "submit": SubmitRequest,
    "verify": VerifyRequest,
}
FUNCTIONS = {"run": bench.run, "tune": bench.tune, "study": bench.study}
every_command = pytest.mark.parametrize("name", REQUESTS)
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def options(command: str) -> dict[str, Any]:
    """What the command line has of a command: field → its parameter."""
    group: Any = typer.main.get_command(app)
    return {parameter.name: parameter for parameter in group.commands[command].params}


@every_command
def test_a_command_has_an_option_for_every_field(name: str) -> None:
    found = options(name)
    fields = {field.name: field for field in declared(REQUESTS[name])}
    assert set(found) - set(fields) <= {"dry_run", "help"}
    for field in fields.values():
        assert found[field.name].help.startswith(field.help) and field.help.endswith(".")
        assert all(choice in found[field.name].help for choice in field.choices)
        if isinstance(field.default, int | float | Path) and not isinstance(field.default, bool):
            assert found[field.name].default == field.default


@pytest.mark.parametrize(
    ("command", "field", "flags"),
    [
        ("run", "overrides", ["--set"]),
        ("run", "max_concurrent", ["--max-concurrent"]),
        ("run", "keep_model", ["--keep-model"]),
        ("tune", "methods", ["--methods", "--method"]),
        ("study", "suites", ["--suite"]),
        ("verify", "file", ["file"]),
    ],
)
def test_how_fields_are_written(command: str, field: str, flags: list[str]) -> None:
    found = options(command)[field]
    assert found.opts == flags and not found.secondary_opts


def test_a_request_knows_the_executors_of_the_engine() -> None:
    assert _field("run", "executor").choices == EXECUTORS


def test_texts_become_values(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunRequest] = []
    monkeypatch.setattr("bench.runs.several.preview", lambda request, observer: seen.append(request))
    given = ["--methods", "fedavg, fedprox", "--set", "fedprox.mu=0.1", "--set", "training.epochs=2"]
    command = ["run", "--suite", "quickstart", "--dry-run", *given, "--tuned", "both", "--out", "here"]
    assert call_bench(*command, BENCH_DATA_ROOT="there").code == 0
    assert call_bench("run", "--tuned", "--suite", "quickstart", "--dry-run").code == 0
    assert seen[0] == RunRequest(
        "quickstart",
        methods=["fedavg", "fedprox"],
        overrides={"fedprox.mu": 0.1, "training.epochs": 2},
        tuned="both",
        out=Path("here"),
        data_root=Path("there"),
    )
    assert seen[1] == RunRequest("quickstart", tuned=True)


@every_function
def test_a_function_takes_every_field_and_says_so(name: str) -> None:
    function: Any = FUNCTIONS[name]
    shown = inspect.signature(function).parameters
    for field in declared(REQUESTS[name]):
        assert field.name in shown
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values())
    assert _field(name, "max_concurrent").help in (inspect.getdoc(function) or "")


def _field(command: str, name: str) -> Declared:
    return next(field for field in declared(REQUESTS[command]) if field.name == name)


@every_function
def test_a_misspelt_keyword_costs_a_sentence(name: str) -> None:
    function: Any = FUNCTIONS[name]
    with pytest.raises(UserError, match=f"bench.{name} has no option 'roundz'; did you mean 'rounds'"):
        function("quickstart", roundz=3)


def test_a_study_passes_on_what_it_shares_with_runs_and_searches() -> None:
    request = StudyRequest(
        ["quickstart"], seeds=4, search_seeds=2, trials=7, executor="loop", keep_model=True, cpus_per_trial=2
    )
    (suite,) = request.loaded
    run, tuning = request.run(suite), request.tuning(suite, "90s")
    assert (run.seeds, run.executor, run.keep_model, run.tuned) == (4, "loop", True, "both")
    assert (tuning.seeds, tuning.trials, tuning.time_budget, list(tuning.methods)) == (2, 7, "90s", ["all"])
    assert run.cpus_per_trial == tuning.cpus_per_trial == 2


def test_the_text_of_a_command_makes_the_same_request(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TuneRequest] = []
    monkeypatch.setattr("bench.search.tune.dry_run", lambda request, observer: seen.append(request))
    request = TuneRequest(
        "my suite.yaml",
        methods=["fedavg", "./my method.py"],
        overrides={"training.optimiser.weight_decay": 1e-5, "model.name": "mlp", "model.hidden": 8},
        sweeps={"fedprox.mu": [1e-4, 0.1], "dataset.name": ["a b", "c"]},
        trials=7,
        seeds=2,
        time_budget="90s",
        out=Path("a folder"),
        data_root=Path("there"),
        gpus_per_trial=0.25,
        widen=True,
    )
    text = command_line("tune", request)
    assert "'my suite.yaml'" in text and "--scheduler" not in text
    assert shlex.split(text)[0] == "bench"
    assert call_bench(*shlex.split(text)[1:], "--dry-run").code == 0
    assert seen == [request]


@pytest.mark.parametrize(("given", "seeds"), [("auto", "auto"), ("3", 3)])
def test_seeds_of_a_search_are_a_number_or_auto(
    monkeypatch: pytest.MonkeyPatch, given: str, seeds: int | str
) -> None:
    seen: list[TuneRequest] = []
    monkeypatch.setattr("bench.search.tune.dry_run", lambda request, observer: seen.append(request))
    assert call_bench("tune", "--suite", "quickstart", "--seeds", given, "--dry-run").code == 0
    assert seen[0].seeds == seeds and seen[0].first_seeds == (3 if given == "3" else 1)
    assert_one_sentence(call_bench("tune", "--suite", "quickstart", "--seeds", "many"), "a number, or auto")
    assert_one_sentence(call_bench("tune", "--suite", "quickstart", "--seeds", "-1"), "--seeds -1")
