"""From ended trials to files: the chosen configuration, its budget in the table, MLflow, and mistakes.

The trials are computed here without Ray, as if a driver had been killed just before writing them down.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
import yaml

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.search.journal import Trial
from bench.search.plan import Search
from bench.search.report import shown_trials, write_report
from bench.search.tracking import SearchTracker
from bench.search.tuned import load_tuned, tuned_suite
from bench.suite.loading import load_suite
from bench.suite.model import MethodEntry
from bench.suite.planning import plan_cells
from bench.suite.rows import label_of
from tests.kit.cli import Outcome, assert_one_sentence, call_bench, files_below, read, rounds_of, write_suite
from tests.kit.tune import one_search

pytestmark = pytest.mark.xdist_group("mlflow")

TRIALS = 4
SEEDS = 2
METHODS = ("fedavg", "local")
"""With a global model and without."""


class Tuning(NamedTuple):
    folder: Path
    suite: Path
    searches: dict[str, Search]
    outcome: Outcome

    def command(self, *more: object, trials: int = TRIALS) -> list[object]:
        return ["tune", "--suite", self.suite, "--trials", trials, "--seeds", SEEDS, *how(self.folder), *more]


def how(folder: Path) -> list[object]:
    return [
        "--search",
        "random",
        "--scheduler",
        "none",
        "--out",
        folder / "runs",
        "--tuned-dir",
        folder / "tuned",
    ]


def compute(cells: Any, folder: Path) -> None:
    for cell in cells:
        run = CellRun(CellFolder(folder / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    folder = tmp_path_factory.mktemp("tuning")
    file = write_suite(folder, methods=list(METHODS))
    suite = load_suite(str(file)).model_copy(update={"seeds": SEEDS})
    searches = {
        method: one_search(suite, method, "wide", "random", "none", 0, (folder / "runs").absolute())
        for method in METHODS
    }
    for search in searches.values():
        journal = search.journal()
        for number in range(TRIALS):
            values = search.suggestion(number, journal.trials)
            assert values is not None
            journal.suggested(number, values)
            compute(search.cells(values), search.directory)
    nothing = Tuning(folder, file, searches, Outcome(0, "", ""))
    return nothing._replace(outcome=call_bench(*nothing.command()))


def test_the_search_ends_well_without_ray(tuning: Tuning) -> None:
    assert (tuning.outcome.code, tuning.outcome.err) == (0, "")
    assert "budget: 4 trials per method; a trial has 4 rounds in 2 cells" in tuning.outcome.out
    assert "the test sets are not read" in tuning.outcome.out
    assert "resources:" not in tuning.outcome.out


@pytest.mark.parametrize("method", METHODS)
def test_the_records_of_a_search_hold_validation_and_no_test(tuning: Tuning, method: str) -> None:
    search = tuning.searches[method]
    folders = [folder.path for trial in search.journal().trials for folder in search.folders(trial)]
    assert len(folders) == TRIALS * SEEDS
    for folder in folders:
        lines = rounds_of(folder)
        assert all("validation" in line and "test" not in line for line in lines)
        final = read(folder / "result.json")["final"]
        measured = {key: value for key, value in final.items() if value is not None}
        assert measured == {"validation": lines[-1]["validation"]}


@pytest.mark.parametrize("method", METHODS)
def test_the_best_mean_over_seeds_is_chosen(tuning: Tuning, method: str) -> None:
    search = tuning.searches[method]
    means = {
        trial.number: fmean(
            read(folder.path / "result.json")["final"]["validation"] for folder in search.folders(trial)
        )
        for trial in search.journal().trials
    }
    tuned = load_tuned(tuning.folder / "tuned" / "tiny" / f"{method}.yaml")
    assert tuned.best.validation == pytest.approx(max(means.values()))
    assert means[tuned.best.trial] == pytest.approx(tuned.best.validation)
    assert tuned.default.validation == pytest.approx(means[0])
    assert tuned.best.validation >= tuned.default.validation
    assert (tuned.budget.finished, tuned.budget.rounds_spent, tuned.budget.complete) == (4, 4 * 2 * 4, True)
    assert (
        tuned.data_checksum
        == read(search.folders(search.journal()[0])[0].path / "result.json")["provenance"]["data_checksum"]
    )


def test_the_same_command_again_changes_nothing(tuning: Tuning) -> None:
    before = {name: file for name, file in files_below(tuning.folder).items() if "mlflow.db" not in name}
    assert call_bench(*tuning.command()).code == 0
    after = {name: file for name, file in files_below(tuning.folder).items() if "mlflow.db" not in name}
    written = {name for name in before if before[name][0] != after[name][0]}
    assert before.keys() == after.keys()
    assert not written


def test_mlflow_has_a_parent_a_search_and_a_child_a_trial(tuning: Tuning) -> None:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    call_bench(*tuning.command())
    client = MlflowClient(tracking_uri=f"sqlite:///{tuning.folder}/runs/mlflow.db")
    experiment = client.get_experiment_by_name("tiny tuning")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = {run.data.tags["method"]: run for run in runs if "search_run" in run.data.tags}
    children = [run for run in runs if "search_trial" in run.data.tags]
    assert set(parents) == set(METHODS)
    assert len(children) == len(METHODS) * TRIALS
    assert {run.info.status for run in runs} == {"FINISHED"}
    for method, parent in parents.items():
        own = [run for run in children if run.data.tags["mlflow.parentRunId"] == parent.info.run_id]
        assert len(own) == TRIALS
        scores = [run.data.metrics["validation"] for run in own]
        assert max(scores) == pytest.approx(parent.data.metrics["best_validation"])
        assert all(float(run.data.params["optimiser.lr"]) > 0 for run in own)
        files = {file.path for file in client.list_artifacts(parent.info.run_id)}
        assert files == {
            "history.json",
            "history.png",
            "importance.json",
            "sensitivity.png",
            "sensitivity.pdf",
            f"{method}.yaml",
        }


def test_mlflow_has_every_searched_key_and_the_score_of_each_setting(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    variants = [
        {"name": f"β={beta}", "set": {"training.batch_size": size}} for beta, size in ((0.1, 8), (1, 16))
    ]
    suite = load_suite(str(write_suite(tmp_path, methods=["fedprox"], seeds=2, variants=variants)))
    search = one_search(suite, "fedprox", "wide", "random", "none", 0, tmp_path / "runs")
    trial = Trial(1, {"mu": 0.25}, "finished", 0.5)
    levels = {"β=0.1": (0.2, 0.4), "β=1": (0.6, 0.8)}
    for cell, folder in zip(search.cells(trial.values), search.folders(trial), strict=True):
        folder.path.mkdir(parents=True)
        line = {"round": 2, "validation": levels[cell.variant][cell.seed]}
        folder.rounds_file.write_text(json.dumps(line) + "\n")
    SearchTracker(None, tmp_path / "runs").log_trial(search, trial)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/runs/mlflow.db")
    experiment = client.get_experiment_by_name("tiny tuning")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id], "tags.outcome = 'finished'")
    assert set(search.space.domains) <= run.data.params.keys() and run.data.params["mu"] == "0.25"
    assert run.data.metrics == pytest.approx(
        {"validation": 0.5, "validation β_0.1": 0.3, "validation β_1": 0.7}
    )


def test_the_figure_of_sensitivity_shows_the_trials_that_ran_all_rounds(tuning: Tuning) -> None:
    search = tuning.searches["fedavg"]
    trials = list(search.journal().trials)
    shown = shown_trials(search, [*trials, Trial(9, trials[1].values, "stopped", 0.99)])
    assert {key.name: key.kind for key in shown.keys} == {
        key: domain.kind for key, domain in search.space.domains.items()
    }
    assert [tried.accuracy for tried in shown.tried] == [100 * (trial.validation or 0) for trial in trials]
    assert [tried.is_default for tried in shown.tried] == [True, False, False, False]
    assert shown.tried[0].values == search.space.default and shown.left_out == 1
    assert all(set(tried.values) == set(search.space.domains) for tried in shown.tried)


def test_a_figure_that_is_missing_is_drawn_again(tuning: Tuning) -> None:
    """As it is missing in the folders of searches that were made before there was one."""
    search = tuning.searches["fedavg"]
    figure = search.directory / "sensitivity.png"
    first = figure.read_bytes()
    figure.unlink()
    files = write_report(search, search.journal().trials)
    assert figure in files and figure.read_bytes() == first


def test_a_table_of_tuned_methods_states_the_budget(tuning: Tuning) -> None:
    run = ["run", "--suite", tuning.suite, "--seeds", "1", "--tuned", *how(tuning.folder)[4:]]
    suite, record = tuned_suite(load_suite(str(tuning.suite)), tuning.folder / "tuned")
    suite = suite.model_copy(update={"seeds": 1})
    compute(plan_cells(suite), tuning.folder / "runs" / "tiny")
    outcome = call_bench(*run)
    assert (outcome.code, outcome.err) == (0, "")
    plan = read(tuning.folder / "runs" / "tiny" / "plan.json")
    assert plan["tuning"] == record
    stated = {
        key: plan["tuning"][key] for key in ("trials", "rounds", "seeds", "search", "space", "scheduler")
    }
    assert stated == {
        "trials": 4,
        "rounds": 4,
        "seeds": 2,
        "search": "random",
        "space": "wide",
        "scheduler": "none",
    }
    table = (tuning.folder / "runs" / "tiny" / "tables" / "tiny.md").read_text()
    assert "tuned (4 trials per method, unit trials, rounds 4, seeds 2, search random" in table
    chosen = load_tuned(tuning.folder / "tuned" / "tiny" / "fedavg.yaml").best.set
    config = read(tuning.folder / "runs" / "tiny" / plan["cells"][0]["dir"] / "config.json")
    rate = (config["method"]["hyperparameters"]["optimiser"] or config["training"]["optimiser"])["lr"]
    assert rate == chosen.get("optimiser.lr", 0.05)
    assert config["training"]["validation"] == 0


def test_what_was_tuned_can_be_shown(tuning: Tuning) -> None:
    for name in ("tiny", ""):
        outcome = call_bench("show", "tuned", *filter(None, [name]), "--tuned-dir", tuning.folder / "tuned")
        assert (outcome.code, outcome.err) == (0, "")
        assert all(label_of(MethodEntry(name=method)) in outcome.out for method in METHODS)
    nothing = call_bench("show", "tuned", "pacs", "--tuned-dir", tuning.folder / "tuned")
    assert_one_sentence(nothing, "nothing tuned of suite 'pacs'", "bench tune --suite pacs")
    assert_one_sentence(call_bench("show", "suite"), "which suite?")


def altered(tuning: Tuning, folder: Path, change: Any) -> Path:
    """The tuned files with one of them changed."""
    (folder / "tiny").mkdir(parents=True)
    for method in METHODS:
        raw = yaml.safe_load((tuning.folder / "tuned" / "tiny" / f"{method}.yaml").read_text())
        if method == "local":
            change(raw)
        (folder / "tiny" / f"{method}.yaml").write_text(yaml.safe_dump(raw))
    return folder


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda raw: raw.update(suite_version=9), "made for version 9 of suite 'tiny'"),
        (lambda raw: raw["how"].update(space_hash="0"), "the search space 'wide' has changed since"),
        (lambda raw: raw["budget"].update(complete=False), "has not spent its budget"),
        (lambda raw: raw["budget"].update(trials=9), "FedAvg and Local had different budgets"),
        (lambda raw: raw.update(extra=1), "unknown key 'extra'"),
    ],
)
def test_what_does_not_fit_is_refused(tuning: Tuning, tmp_path: Path, change: Any, expected: str) -> None:
    folder = altered(tuning, tmp_path / "tuned", change)
    run = ["run", "--suite", tuning.suite, "--tuned", "--out", tmp_path / "runs", "--tuned-dir", folder]
    assert_one_sentence(call_bench(*run), expected)
    assert not (tmp_path / "runs").exists()


def test_a_choice_on_other_data_is_said(tuning: Tuning, tmp_path: Path) -> None:
    def said(folder: Path) -> str:
        run = ["run", "--suite", tuning.suite, "--tuned", "--tuned-dir", folder, "--dry-run"]
        return call_bench(*run, "--out", tmp_path / "runs").out

    assert "other data" not in said(tuning.folder / "tuned")
    elsewhere = altered(tuning, tmp_path / "tuned", lambda raw: raw.update(data_checksum="0"))
    assert "note: the hyperparameters of local were chosen on other data" in said(elsewhere)


def test_a_choice_under_other_settings_is_said(tuning: Tuning, tmp_path: Path) -> None:
    def said(*changes: str) -> str:
        run = ["run", "--suite", tuning.suite, "--tuned", "--tuned-dir", tuning.folder / "tuned", "--dry-run"]
        return call_bench(*run, "--out", tmp_path / "runs", *changes).out

    complaint = "were chosen with another dataset, partition, model or training"
    assert complaint not in said()
    assert complaint not in said("--rounds", "2", "--seeds", "1", "--set", "fedavg.optimiser.lr=0.3")
    assert f"hyperparameters of {', '.join(METHODS)} {complaint}" in said("--set", "model.hidden=5")


def test_a_method_that_was_not_tuned_is_named(tuning: Tuning, tmp_path: Path) -> None:
    run = [
        "run",
        "--suite",
        tuning.suite,
        "--methods",
        "fedprox",
        "--tuned",
        "--tuned-dir",
        tuning.folder / "tuned",
    ]
    outcome = call_bench(*run, "--out", tmp_path / "runs")
    assert_one_sentence(outcome, "FedProx has no ", "bench tune --suite tiny.yaml --methods fedprox")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--space", "papers"], "unknown --space 'papers'; did you mean 'paper'"),
        (["--search", "tpe"], "unknown --search 'tpe'"),
        (["--scheduler", "ash"], "did you mean 'asha'"),
        (["--budget", "round"], "did you mean 'rounds'"),
        (["--method", "fedavgg"], "unknown method 'fedavgg'; did you mean 'fedavg'"),
        (["--method", ","], "--methods is empty"),
        (["--trials", "0"], "--trials 0: must be at least 1"),
        (["--seed", "-1"], "--seed -1"),
        (["--max-failures", "0"], "--max-failures 0"),
        (["--time-budget", "soon"], "--time-budget soon"),
        (["--gpus-per-trial", "-1"], "--gpus-per-trial -1"),
        (["--search", "grid"], "use --space paper"),
        (["--sweep", "fedavg.weighting="], "expected KEY=VALUES"),
        (["--sweep", "mu=1,2"], "it must begin with a method, a row or a section of the suite"),
        (["--sweep", "fedavg.mu=1,2"], "unknown key 'mu'"),
        (["--sweep", "partition.samples=15,99999"], "99999"),
        (["--sweep", "training.optimiser.lr=0.1,-1"], "lr = -1"),
    ],
)
def test_a_mistake_costs_a_sentence(tmp_path: Path, arguments: list[str], expected: str) -> None:
    suite = write_suite(tmp_path, methods=["fedavg"])
    outcome = call_bench("tune", "--suite", suite, "--out", tmp_path / "runs", *arguments)
    assert_one_sentence(outcome, expected)
    assert not (tmp_path / "runs").exists()
