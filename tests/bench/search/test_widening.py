"""`bench tune --widen`, `--seeds auto`, `--dry-run`, and the commands that `bench tune` prints at its end."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from bench.engine.cell import CellRun
from bench.engine.conditions import Conditions
from bench.records.cell_folder import CellFolder
from bench.search.budget import Budget, Limits
from bench.search.journal import Journal
from bench.search.plan import Search, searches_of
from bench.search.request import TuneRequest
from bench.search.space import Values
from bench.search.tuned import load_tuned
from tests.kit.cli import Outcome, call_bench, read
from tests.kit.tune import search_of, tiny_suite

pytestmark = pytest.mark.xdist_group("ray")

TRIALS, ROUNDS = 3, 4


MINE = """
from pydantic import Field

from methods.fedavg import FedAvg


class Mine(FedAvg):
    label = "Mine"

    shift: float = Field(default=0.5, ge=0, le=1)
"""


class Tuning:
    """Searches of FedAvg whose default is the best and lies at the upper end of its range."""

    def __init__(self, folder: Path, epochs: int = 2, samples: int = 20) -> None:
        self.folder = folder
        optimiser = {"name": "sgd", "lr": 1.0}
        training = {"epochs": epochs, "batch_size": 10, "optimiser": optimiser, "rounds": ROUNDS}
        partition = {"name": "by_domain", "clients": 4, "samples": samples}
        self.suite = tiny_suite(folder, ROUNDS, methods=["fedavg"], training=training, partition=partition)

    def arguments(self, *more: object) -> list[object]:
        how = ["--trials", TRIALS, "--search", "random", "--scheduler", "none"]
        places = ["--out", self.folder / "runs", "--tuned-dir", self.folder / "tuned"]
        return ["tune", "--suite", self.suite, *how, *places, *more]

    @property
    def search(self) -> Search:
        return search_of(self.suite, self.folder / "runs", "random", "none", method="fedavg").continued()

    @property
    def tuned(self) -> Any:
        return load_tuned(next((self.folder / "tuned" / "tiny").glob("*.yaml")))

    def lines(self) -> list[dict[str, Any]]:
        file = self.search.directory / "trials.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def compute(self, trials: int) -> None:
        """Trials without Ray; the journal is left as by a driver that was killed before their ends."""
        search = self.search
        journal = search.journal()
        for number in range(len(journal.trials), trials):
            values = search.suggestion(number, journal.trials)
            assert values is not None
            journal.suggested(number, values)
            compute(search, values)


def compute(search: Search, values: Values) -> None:
    for cell in search.cells(values):
        run = CellRun(CellFolder(search.directory / cell.directory), cell.config, Conditions())
        while not run.done:
            run.advance()


def command_after(word: str, outcome: Outcome) -> list[str]:
    """The words of a command that `bench tune` has printed, as a shell reads them."""
    (line,) = [line for line in outcome.out.splitlines() if line.startswith(f"{word}: ")]
    bench, *words = shlex.split(line.removeprefix(f"{word}: "))
    assert bench == "bench"
    return words


@pytest.fixture(scope="module")
def widened(ray_session: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tuning, list[Outcome]]:
    """A search with its ends written, then made wider with Ray, and the same command after that."""
    tuning = Tuning(tmp_path_factory.mktemp("widened"))
    tuning.compute(TRIALS)
    first = call_bench(*tuning.arguments("--seeds", 1))
    second = call_bench(*command_after("widen", first)) if "widen: " in first.out else first
    return tuning, [first, second, call_bench(*tuning.arguments("--seeds", 1))]


def test_a_best_value_at_a_bound_is_said_and_recorded(widened: tuple[Tuning, list[Outcome]]) -> None:
    _, (first, _, _) = widened
    assert first.code == 0, first
    assert "FedAvg: the best optimiser.lr = 1.0 is at the upper end of 0.0001–1.0 log" in first.out
    assert "--widen" in command_after("widen", first)


def test_the_printed_command_goes_on_in_a_wider_range_with_the_trials_so_far(
    widened: tuple[Tuning, list[Outcome]],
) -> None:
    tuning, (_, second, _) = widened
    assert (second.code, second.err) == (0, ""), second
    assert "widening optimiser.lr from 0.0001–1.0 log to 0.0001–10" in second.out
    lines = [line for line in tuning.lines() if "values" in line or "widened" in line]
    assert ["widened" in line for line in lines] == [False] * TRIALS + [True] + [False] * TRIALS
    assert lines[TRIALS]["widened"] == {"optimiser.lr": [0.0001, 10.0]}
    assert all(0.0001 <= line["values"]["optimiser.lr"] <= 10 for line in lines[TRIALS + 1 :])
    tuned = tuning.tuned
    assert tuned.how.widened == {"optimiser.lr": [0.0001, 10.0]}
    assert (tuned.budget.trials, tuned.budget.finished, tuned.budget.complete) == (TRIALS, 2 * TRIALS, True)
    assert (
        tuned.how.id
        == search_of(tuning.suite, tuning.folder / "runs", "random", "none", method="fedavg").identity
    )


def test_the_same_search_without_the_option_stays_wide_and_computes_nothing(
    widened: tuple[Tuning, list[Outcome]],
) -> None:
    tuning, (_, _, third) = widened
    assert third.code == 0 and "resources:" not in third.out
    assert "3 trials in narrower ranges kept" in third.out
    assert tuning.tuned.how.widened == {"optimiser.lr": [0.0001, 10.0]}


def test_a_run_takes_what_a_wider_search_has_found(widened: tuple[Tuning, list[Outcome]]) -> None:
    _, (_, second, _) = widened
    words = command_after("use it", second)
    outcome = call_bench(*words, "--dry-run")
    assert (outcome.code, outcome.err) == (0, "")
    assert "cells: 1 (1 method × 1 seed)" in outcome.out


def test_a_wider_search_resumes_after_a_kill_and_can_be_made_wider_again(tmp_path: Path) -> None:
    """The kill comes right after the first new trial; all trials are computed here without Ray."""
    tuning = Tuning(tmp_path)
    tuning.compute(TRIALS)
    assert call_bench(*tuning.arguments("--seeds", 1)).code == 0
    tuning.search.journal().widen({"optimiser.lr": [0.0001, 10.0]})
    tuning.compute(TRIALS + 1)
    limits = Limits(TRIALS, by_rounds=False, max_failures=5)
    assert not Budget(tuning.search, limits).complete(tuning.search.journal())
    plan = call_bench(*tuning.arguments("--seeds", 1, "--widen", "--dry-run"))
    assert "the search is not complete and goes on with its present ranges" in plan.out
    assert f"searches: {TRIALS} trials to run" in plan.out
    tuning.compute(2 * TRIALS)
    best = call_bench(*tuning.arguments("--seeds", 1))
    assert best.code == 0 and tuning.tuned.budget.finished == 2 * TRIALS
    journal = tuning.search.journal()
    journal.widen({"optimiser.lr": [0.0001, 100.0]})
    assert (tuning.search.carried, tuning.search.space.domains["optimiser.lr"].values) == (6, (0.0001, 100.0))
    tuning.compute(3 * TRIALS)
    assert call_bench(*tuning.arguments("--seeds", 1)).code == 0
    assert (tuning.tuned.how.widened, tuning.tuned.budget.finished) == ({"optimiser.lr": [0.0001, 100.0]}, 9)


def test_where_nothing_is_at_a_bound_nothing_is_done(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path)
    sweep = ["--sweep", "training.optimiser.lr=0.1,0.2", "--seeds", 1]
    search = call_bench(*tuning.arguments(*sweep, "--dry-run"))
    assert search.code == 0 and not (tmp_path / "runs").exists()
    tuning.compute(TRIALS)
    tuning.search.journal().widen({"optimiser.lr": [0.0001, 1000.0]})  # 1 is now in the middle
    tuning.compute(2 * TRIALS)
    assert call_bench(*tuning.arguments("--seeds", 1)).code == 0
    before, tuned = tuning.lines(), tuning.tuned
    assert not tuned.at_bound
    outcome = call_bench(*tuning.arguments("--seeds", 1, "--widen"))
    assert outcome.code == 0 and "widen: " not in outcome.out
    assert "no value of the best trial is at an end of its range; nothing to widen" in outcome.out
    assert (tuning.lines(), tuning.tuned) == (before, tuned)


def test_the_journal_keeps_wider_ranges(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "trials.jsonl")
    journal.suggested(0, {})
    journal.widen({"a": [0.1, 1.0]})
    journal.suggested(1, {"a": 0.5})
    journal.widen({"b": [1, 9]})
    again = Journal(tmp_path / "trials.jsonl")
    assert (again.widened, again.carried, len(again.trials)) == ({"a": [0.1, 1.0], "b": [1, 9]}, 2, 2)


def test_the_best_ones_run_with_further_seeds(ray_session: None, tmp_path: Path) -> None:
    """With the first seed all three score about the same, so that Ray has cells of a second one to run."""
    tuning = Tuning(tmp_path, epochs=1, samples=40)
    tuning.compute(TRIALS)
    outcome = call_bench(*tuning.arguments())
    assert (outcome.code, outcome.err) == (0, ""), outcome
    tuned = tuning.tuned
    assert tuned.budget.seeds == "auto" and tuned.selection is not None
    seeds = tuned.selection.seeds
    cells = [read(file) for file in (tuning.search.directory / "cells").glob("*/config.json")]
    assert {cell["seed"] for cell in cells} == set(range(seeds)) and seeds > 1
    assert tuned.budget.rounds_spent == seeds * TRIALS * ROUNDS
    assert seeds == 5 or tuned.selection.standard_error <= tuned.selection.spread
    assert f"FedAvg: on {seeds} seeds a score has a standard error of" in outcome.out
    again = call_bench(*tuning.arguments())
    assert again.code == 0 and "resources:" not in again.out and tuning.tuned == tuned


def test_a_dry_run_says_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    tuning = Tuning(tmp_path)
    outcome = call_bench(*tuning.arguments("--dry-run"))
    assert (outcome.code, outcome.err) == (0, "")
    for expected in ("budget: 3 trials", "FedAvg: optimiser.lr 0.0001–1.0 log", "3 trials to run", "time: "):
        assert expected in outcome.out
    assert "seeds: 1, and up to 5 for the best quarter" in outcome.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.yaml"]


def test_the_command_for_a_method_from_a_file_runs_when_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my files"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    monkeypatch.chdir(folder)
    suite = tiny_suite(folder, ROUNDS, methods=["fedavg"])
    changes = {"model.hidden": 8, "mine.shift": 0.25}
    request = TuneRequest(str(suite), methods=["./mine.py"], overrides=changes, trials=1, seeds=1)
    (search,) = searches_of(request)
    search.journal().suggested(0, {})
    compute(search, {})
    arguments = ["tune", "--suite", suite, "--methods", "./mine.py", "--trials", 1, "--seeds", 1]
    outcome = call_bench(
        *arguments, "--set", "model.hidden=8", "--set", "mine.shift=0.25", "--tuned-dir", "my tuned"
    )
    assert outcome.code == 0, outcome
    words = command_after("use it", outcome)
    assert words[words.index("--methods") + 1] == "./mine.py"
    assert words[words.index("--tuned-dir") + 1] == "my tuned"
    planned = call_bench(*words, "--dry-run")
    assert (planned.code, planned.err) == (0, "")
    assert "methods: Mine" in planned.out and "another dataset" not in planned.out
