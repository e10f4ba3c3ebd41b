"""The memory of a search, what it may spend, and what it has found."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.search.budget import Budget, Limits, repeated_failure
from bench.search.finish import DataFacts, outcome_of
from bench.search.journal import Journal
from bench.search.plan import Search
from bench.search.report import importance
from tests.kit.tune import one_search, suite

ROUNDS = 4


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return one_search(suite("fedprox"), "fedprox", "wide", "random", "asha", 0, tmp_path)


DATA = DataFacts(checksum="sum", samples=16)


def limits(trials: int, by_rounds: bool = False, max_failures: int = 5) -> Limits:
    return Limits(trials, by_rounds, max_failures)


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    journal = Journal(file)
    journal.suggested(0, {})
    journal.suggested(1, {"mu": 0.1})
    journal.ended(0, "finished", 0.25, 4)
    again = Journal(file)
    assert again.trials == journal.trials
    assert [trial.number for trial in again.open] == [1]
    assert (again[0].outcome, again[0].validation, again[1].values) == ("finished", 0.25, {"mu": 0.1})


@pytest.mark.parametrize("cut", [1, 10, 25])
def test_half_a_line_is_as_if_it_had_never_been(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "trials.jsonl"
    journal = Journal(file)
    journal.suggested(0, {})
    journal.suggested(1, {"mu": 0.1})
    file.write_bytes(file.read_bytes()[:-cut])
    again = Journal(file)
    assert [trial.number for trial in again.trials] == [0]
    again.suggested(1, {"mu": 0.2})
    assert [trial.values for trial in Journal(file).trials] == [{}, {"mu": 0.2}]


def filled(search: Search, *ends: tuple[str, float | None, int]) -> Journal:
    """One trial for every (outcome, validation, rounds)."""
    journal = search.journal()
    for number, (outcome, validation, rounds) in enumerate(ends):
        journal.suggested(number, {} if number == 0 else {"mu": number / 10, "optimiser.lr": 0.01})
        reason = "diverged: x" if outcome == "failed" else ""
        journal.ended(number, outcome, validation, rounds, reason)  # type: ignore[arg-type]
    return journal


def test_a_budget_of_trials_counts_them_all_alike(search: Search) -> None:
    journal = filled(search, ("finished", 0.2, 4), ("stopped", 0.1, 1), ("failed", None, 2))
    assert Budget(search, limits(4)).left(journal)
    assert not Budget(search, limits(3)).left(journal)
    assert Budget(search, limits(3)).complete(journal)
    journal.suggested(3, {"mu": 0.9, "optimiser.lr": 0.01})
    assert not Budget(search, limits(4)).left(journal)
    assert not Budget(search, limits(4)).complete(journal)


def test_a_budget_of_rounds_gives_away_what_early_stops_have_saved(search: Search) -> None:
    """Three trials of four rounds are twelve; 4 + 1 + 1 are spent, so a fourth and no fifth fits."""
    journal = filled(search, ("finished", 0.2, 4), ("stopped", 0.1, 1), ("stopped", 0.1, 1))
    budget = Budget(search, limits(3, by_rounds=True))
    assert budget.left(journal)
    journal.suggested(3, {"mu": 0.9, "optimiser.lr": 0.01})
    assert not budget.left(journal), "4 + 1 + 1 + 4 promised, 4 more would be 14"
    journal.ended(3, "stopped", 0.1, 2)
    assert budget.left(journal), "the two rounds that were saved make room"


def test_a_smaller_budget_than_before_counts_only_its_own_trials(search: Search) -> None:
    journal = filled(search, ("finished", 0.2, 4), ("finished", 0.1, 4), ("finished", 0.9, 4))
    tuned = outcome_of(search, journal, limits(2), DATA, "")
    assert tuned is not None
    assert (tuned.best.trial, tuned.budget.finished, tuned.budget.complete) == (0, 2, True)


def test_the_best_is_chosen_among_those_that_ran_all_rounds(search: Search) -> None:
    ends = [("finished", 0.2, 4), ("stopped", 0.9, 1), ("finished", 0.3, 4), ("finished", 0.3, 4)]
    tuned = outcome_of(search, filled(search, *ends), limits(4), DATA, "commit")
    assert tuned is not None
    assert (tuned.best.trial, tuned.best.validation, tuned.default.validation) == (2, 0.3, 0.2)
    assert [scored.trial for scored in tuned.runner_ups] == [3, 0]
    assert (tuned.budget.finished, tuned.budget.stopped, tuned.budget.rounds_spent) == (3, 1, 13)


def test_without_a_score_of_the_default_there_is_no_outcome(search: Search) -> None:
    journal = filled(search, ("failed", None, 1), ("finished", 0.4, 4))
    assert outcome_of(search, journal, limits(2), DATA, "") is None


def test_failures_are_counted_by_kind(search: Search) -> None:
    journal = filled(search, ("finished", 0.2, 4), ("failed", None, 1), ("failed", None, 1))
    assert repeated_failure(journal, limits(9, max_failures=3)) is None
    assert repeated_failure(journal, limits(9, max_failures=2)) == "diverged"
    assert repeated_failure(journal, limits(9, max_failures=3), lost=3) == "process died"


def test_importance_finds_the_key_that_matters(tmp_path: Path) -> None:
    """Scores that depend on mu alone."""
    search = one_search(suite("fedprox"), "fedprox", "wide", "random", "none", 0, tmp_path)
    journal = search.journal()
    for number in range(30):
        values = search.suggestion(number, journal.trials)
        assert values is not None
        journal.suggested(number, values)
        journal.ended(number, "finished", (search.space.default | values)["mu"], 4)
    shares = importance(search, journal.trials)["importance"]
    assert shares["mu"] > 0.8
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "reason"), [([0.1, 0.2], "2 finished trials, of 4 needed"), ([0.3] * 6, "the same score")]
)
def test_importance_says_why_there_is_none(search: Search, scores: list[float], reason: str) -> None:
    journal = filled(search, *(("finished", score, 4) for score in scores))
    found = importance(search, journal.trials)
    assert found["importance"] is None
    assert reason in found["reason"]


def test_what_failed_in_an_earlier_command_does_not_end_the_next(tmp_path: Path) -> None:
    limits = Limits(trials=8, by_rounds=False, max_failures=2)
    journal = Journal(tmp_path / "trials.jsonl")
    for number in range(2):
        journal.suggested(number, {})
        journal.ended(number, "failed", None, 0, "diverged: so it was")
    assert repeated_failure(journal, limits) == "diverged"
    again = Journal(tmp_path / "trials.jsonl")
    assert repeated_failure(again, limits) is None
    for number in (2, 3):
        again.suggested(number, {})
        again.ended(number, "failed", None, 0, "diverged: and so it is")
    assert repeated_failure(again, limits) == "diverged"


def test_what_is_noted_together_is_on_the_disk_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    noted = Journal(file)
    with noted.in_one_write():
        noted.suggested(0, {})
        noted.suggested(1, {"mu": 0.1})
        assert [trial.number for trial in noted.trials] == [0, 1]
        assert not file.exists()
    noted.ended(0, "finished", 0.5, 4)
    assert Journal(file).trials == noted.trials
    with pytest.raises(RuntimeError), noted.in_one_write():
        noted.ended(1, "finished", 0.6, 4)
        raise RuntimeError("in the middle")
    assert Journal(file).trials == noted.trials
