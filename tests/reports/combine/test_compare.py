"""What changed between two runs, cell by cell."""

import math
from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.combine.compare import compare_runs
from tests.kit.cli import Outcome, call_bench
from tests.kit.run_folders import Planned, write_run


def compare(tmp_path: Path, first: list[Planned], second: list[Planned], **plan: Any) -> Outcome:
    write_run(tmp_path / "a", first)
    write_run(tmp_path / "b", second, **plan)
    return call_bench("compare", "a", "b", "--runs", tmp_path)


def rows(outcome: Outcome) -> list[list[str]]:
    return [line.split() for line in outcome.out.splitlines() if " seed " in line and "only in" not in line]


def test_accuracies_settings_and_provenance_that_differ(tmp_path: Path) -> None:
    ours = Planned("fedlsa", 0, (0.80, 0.50), hyperparameters={"lam": 0.7, "steps": {"server": 5}})
    theirs = Planned(
        "fedlsa", 0, (0.82, 0.50), hyperparameters={"lam": 0.7, "steps": {"server": 9}}, commit="f" * 40
    )
    write_run(tmp_path / "a", [ours])
    write_run(tmp_path / "b", [theirs], set={"fedlsa.steps": 9})
    found = compare_runs(load_run(tmp_path / "a"), load_run(tmp_path / "b"))
    (change,) = found.changes
    assert change.difference is not None and math.isclose(change.difference, 1.0)
    assert list(change.domains) == ["mnist"]
    assert change.settings == {"method.hyperparameters.steps.server": ("5", "9")}
    assert change.provenance == {"commit": ("0123456789abcdef0123456789abcdef01234567", "f" * 40)}
    assert found.plan == {"set.fedlsa.steps": ("absent", "9")}


def test_the_command_shows_a_line_for_each_cell_that_changed(tmp_path: Path) -> None:
    first = [Planned("fedavg", seed, (0.5, 0.5)) for seed in range(2)]
    second = [Planned("fedavg", 0, (0.5, 0.5)), Planned("fedavg", 1, (0.6, 0.3))]
    done = compare(tmp_path, first, second)
    assert (done.code, done.err) == (0, "")
    (row,) = rows(done)
    assert row[:6] == ["FedAvg", "seed", "1", "50.00", "45.00", "−5.00"]
    assert row[6:] == ["mnist", "+10.00,", "fonts", "−20.00"]
    assert "1 of the 2 cells in both runs have the same accuracies." in done.out


def test_what_all_cells_share_is_said_once(tmp_path: Path) -> None:
    first = [Planned("fedavg", seed, (0.5, 0.5)) for seed in range(3)]
    second = [Planned("fedavg", seed, (0.5, 0.5), rounds=10, commit="f" * 40) for seed in range(3)]
    done = compare(tmp_path, first, second)
    assert done.out.count("training.rounds: 20 → 10") == 1
    assert done.out.count(f"→ {'f' * 40}") == 1
    assert "3 of the 3 cells in both runs have the same accuracies." in done.out


def test_cells_of_one_run_and_cells_without_a_result(tmp_path: Path) -> None:
    first = [Planned("fedavg", 0, (0.5, 0.5)), Planned("fedprox", 0, (0.5, 0.5)), Planned("fedlsa", 0)]
    second = [Planned("fedavg", 0, error="out of memory"), Planned("fedprox", 0, (math.nan, 0.5))]
    done = compare(tmp_path, first, second)
    assert "only in A: FedLSA seed 0" in done.out and "only in B" not in done.out
    failed, lost = (" ".join(row) for row in rows(done))
    assert failed == "FedAvg seed 0 50.00 – – failed: out of memory in B"
    assert lost == "FedProx seed 0 50.00 – – no finite value on mnist in B"


def test_a_run_against_itself(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [Planned("fedavg", 0, (0.5, 0.5))])
    done = call_bench("compare", "a", "a", "--runs", tmp_path)
    assert done.code == 0
    assert done.out.splitlines()[2:] == ["1 of the 1 cells in both runs have the same accuracies."]


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    write_run(tmp_path / "quick", [Planned("fedavg", 0, (0.5, 0.5))])
    done = call_bench("compare", "quick", "quikc", "--runs", tmp_path)
    assert done.code == 2 and "did you mean 'quick'" in done.err
