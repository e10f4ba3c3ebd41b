"""Searches of one command: side by side in kept processes, each as if alone, in its share of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.search.journal import Trial
from bench.search.tuned import load_tuned
from tests.kit.cli import Outcome, run_bench
from tests.kit.tune import Package, assert_the_same_as_alone, journal, search_of, tiny_suite

pytestmark = pytest.mark.xdist_group("clusters")

METHODS = ("steady", "compressed+steady", "proto+steady")
TRIALS = 4
PROCESSES = 2


class Searches:
    """Commands over the same suite and package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = Package(folder / "site")
        self.suite = tiny_suite(folder, rounds=4, methods=list(METHODS))

    def tune(self, name: str, methods: str, *more: object) -> Outcome:
        out = self.folder / name
        return run_bench(
            *("tune", "--suite", self.suite, "--method", methods, "--trials", TRIALS, "--seeds", 1),
            *("--search", "random", "--scheduler", "none", "--max-concurrent", PROCESSES),
            *("--out", out, "--tuned-dir", out / "tuned", *more),
            PYTHONPATH=self.package.path,
        )

    def journals(self, name: str) -> dict[str, dict[int, dict[str, Any]]]:
        """Method → trial → all that is written about it."""
        folders = sorted((self.folder / name / "tune" / "tiny").iterdir())
        return {
            folder.name.rpartition("-")[0]: dict(sorted(journal(folder).items()))
            for folder in folders
            if (folder / "trials.jsonl").exists()
        }


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Searches:
    return Searches(tmp_path_factory.mktemp("searches"))


@pytest.fixture(scope="module")
def together(searches: Searches) -> Outcome:
    outcome = searches.tune("together", "all")
    assert outcome.code == 0, outcome
    searches.package.keep("together")
    return outcome


def test_all_searches_are_complete(searches: Searches, together: Outcome) -> None:
    assert (together.code, together.err) == (0, "")
    assert f"tuning 3 methods: {3 * TRIALS} trials to run, 0 already done" in together.out
    assert together.out.count("resources: ") == 1
    for method, trials in searches.journals("together").items():
        assert [trial["outcome"] for trial in trials.values()] == ["finished"] * TRIALS
        tuned = load_tuned(searches.folder / "together" / "tuned" / "tiny" / f"{method}.yaml")
        assert (tuned.budget.finished, tuned.budget.complete) == (TRIALS, True)
        reports = (searches.folder / "together").rglob(f"{method}-*/history.png")
        assert len(list(reports)) == 1


def test_processes_are_kept_from_search_to_search(searches: Searches, together: Outcome) -> None:
    lines = (searches.package.folder / "done-together.jsonl").read_text().splitlines()
    processes = {line.partition('"pid": ')[2].partition(",")[0] for line in lines}
    assert 1 <= len(processes) <= PROCESSES < len(METHODS)


def test_a_search_tries_what_it_would_try_alone(
    searches: Searches, together: Outcome, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(searches.package.folder)
        searches.package.take(0)
        out = searches.folder / "together"
        search = search_of(searches.suite, out, "random", "none", method="proto+steady")
        found = searches.journals("together")["proto+steady"]
        past: list[Trial] = []
        for number in range(TRIALS):
            values = search.suggestion(number, past)
            assert values is not None and found[number]["values"] == values
            past.append(Trial(number, values))
        assert_the_same_as_alone(search, found[TRIALS - 1], tmp_path)


@pytest.mark.long
def test_time_is_shared_and_the_rest_goes_on_later(searches: Searches, together: Outcome) -> None:
    """Every search would take longer than all the time there is; the third gets its part, too."""
    searches.package.take(1)
    cut = searches.tune("later", "all", "--time-budget", "14s")
    assert (cut.code, cut.err) == (1, "")
    for method in METHODS:
        assert f"the search of {method} is not complete (" in cut.out
    begun = searches.journals("later")
    assert sorted(begun) == sorted(METHODS)
    assert all(trial.get("outcome") in (None, "finished") for of in begun.values() for trial in of.values())
    searches.package.take(0)
    assert searches.tune("later", "all").code == 0
    assert searches.journals("later") == searches.journals("together")
