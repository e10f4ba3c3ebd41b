"""Rows that were still improving when their training ended."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.records.reader import load_run
from reports.numbers.convergence import end_rise, trend
from reports.numbers.scores import rows_of
from reports.tables.kinds import domain_table
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import notes, row

Curve = Callable[[int], float]


def cells(
    curve: Curve, shifts: tuple[float, ...], rounds: int, method: str = "fedavg", every: int = 1
) -> list[Planned]:
    """A cell per shift, by which its curve rises more in every round."""
    found = []
    for seed, shift in enumerate(shifts):
        at = {n: curve(n) + shift * (n - 0.9 * rounds) for n in range(every, rounds + 1, every)}
        accuracies = {number: (value, value) for number, value in at.items()}
        found.append(Planned(method, seed, accuracies[rounds], rounds=rounds, curve=accuracies))
    return found


def judged(path: Path, planned: list[Planned]) -> bool | None:
    (only,) = rows_of(load_run(write_run(path, planned)), "")
    found = trend(only)
    return None if found is None else found.still_improving


STEADY = (0.0001, -0.0001, 0.00005, -0.00005, 0.0)


def test_a_straight_line_rises_by_its_slope_over_the_last_fifth(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, cells(lambda n: 0.3 + 0.002 * n, (0.0,), rounds=100)))
    # rounds 81 to 100: 19 steps of 0.2 points
    assert end_rise(run.cells[0], run.domains) == pytest.approx(3.8)


def test_a_rise_before_the_last_fifth_does_not_count(tmp_path: Path) -> None:
    assert judged(tmp_path, cells(lambda n: min(0.5, 0.007 * n), STEADY, rounds=100)) is False


def test_a_steady_rise_is_marked_and_a_fall_is_not(tmp_path: Path) -> None:
    assert judged(tmp_path / "up", cells(lambda n: 0.3 + 0.002 * n, STEADY, rounds=100)) is True
    assert judged(tmp_path / "down", cells(lambda n: 0.6 - 0.002 * n, STEADY, rounds=100)) is False


def test_a_rise_within_its_standard_error_is_not_marked(tmp_path: Path) -> None:
    wild = (0.004, -0.004, 0.003, -0.003, 0.001)  # ± 0.3 points per round: mean 0.02, error 0.17
    assert judged(tmp_path, cells(lambda n: 0.5, wild, rounds=100)) is False


def test_a_rise_that_would_not_change_the_table_is_not_marked(tmp_path: Path) -> None:
    assert judged(tmp_path / "tiny", cells(lambda n: 0.5 + 0.00004 * n, (0.0,) * 5, rounds=100)) is False
    assert judged(tmp_path / "more", cells(lambda n: 0.5 + 0.00006 * n, (0.0,) * 5, rounds=100)) is True


def test_short_runs_are_judged_by_their_last_five_rounds(tmp_path: Path) -> None:
    assert judged(tmp_path, cells(lambda n: 0.3 + 0.01 * n, STEADY, rounds=6)) is True


def test_rarely_evaluated_rows_are_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path / "rare", cells(lambda n: 0.3 + 0.01 * n, STEADY, rounds=20, every=10)) is None
    assert judged(tmp_path / "often", cells(lambda n: 0.3 + 0.002 * n, STEADY, rounds=60, every=4)) is True


def test_the_table_its_footnotes_and_its_caption_say_so(tmp_path: Path) -> None:
    rising = cells(lambda n: 0.3 + 0.002 * n, STEADY, rounds=50, method="fedlsa")
    table = domain_table(load_run(write_run(tmp_path, cells(lambda n: 0.5, STEADY, 50) + rising)))
    assert (row(table, "FedLSA").signs, row(table, "FedAvg").signs) == (("↑",), ())
    assert any(note.startswith("↑ still improving at the end: FedLSA. A line") for note in notes(table))
    assert "still improving at the last round: FedLSA;" in table.caption
