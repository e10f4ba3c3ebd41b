"""Which of many suites a ranking is made over."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.records.reader import Run, load_run
from reports.numbers.ranking import comparable, rank_runs
from tests.kit.run_folders import Planned, write_run

METHODS = ("fedavg", "fedprox", "moon", "feddyn", "scaffold", "fedlsa")


def run(folder: Path, suite: str, methods: tuple[str, ...], dataset: str) -> Run:
    cells = [
        Planned(method, 0, (0.5 + place / 100, 0.6), dataset=dataset) for place, method in enumerate(methods)
    ]
    return load_run(write_run(folder / suite, cells, suite=suite))


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [
        run(tmp_path, "all", METHODS, "digits_mini"),
        run(tmp_path, "other", METHODS[:2], "pacs"),
        run(tmp_path, "five", METHODS[:5], "office_caltech"),
        run(tmp_path, "six", METHODS, "cifar10"),
    ]


def test_suites_that_share_too_few_methods_are_left_out(runs: list[Run]) -> None:
    chosen = comparable(runs)
    assert [each.suite.name for each in chosen] == ["all", "five", "six"]
    ranking = rank_runs(chosen)
    assert rank_runs(runs) is None and ranking is not None
    assert set(ranking.methods) == {each.label for each in runs[2].cells}


def test_of_two_choices_the_one_with_more_methods(runs: list[Run]) -> None:
    assert [each.suite.name for each in comparable([runs[0], runs[3], runs[1]])] == ["all", "six"]


def test_without_a_choice_all_stay(runs: list[Run]) -> None:
    assert comparable(runs[1:3]) == runs[1:3]
    assert comparable([]) == []
