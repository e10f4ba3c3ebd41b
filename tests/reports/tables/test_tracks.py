"""Rows whose hyperparameters were found in different ways: here, for several suites, or not at all."""

from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.combine.tracks import shared_track
from reports.tables.kinds import tables_of
from tests.kit.run_folders import Planned, write_run

SHARED = {"set": {"optimiser.lr": 0.1}, "shared_by": ["quickstart", "digits"]}
TUNED = {"set": {"optimiser.lr": 0.3}, "to_target": {"accuracy": 0.5, "rounds": 3, "megabytes": 1.5}}
NEVER = {"set": {"mu": 1.0}, "to_target": {"accuracy": 0.5, "rounds": None, "megabytes": None}}


def three_tracks(folder: Path, suite: str = "quickstart") -> Path:
    cells = [
        Planned("fedavg", 0, (0.5, 0.6), label="FedAvg"),
        Planned("fedavg", 0, (0.4, 0.5), label="FedAvg (shared)"),
        Planned("fedavg", 0, (0.3, 0.4), label="FedAvg (default)"),
        Planned("fedprox", 0, (0.5, 0.7), label="FedProx"),
    ]
    methods = {"fedavg": TUNED, "FedAvg (shared)": SHARED, "fedprox": NEVER}
    return write_run(folder, cells, suite=suite, tuning={"trials": 4, "methods": methods})


def column(table: Any, heading: str) -> dict[str, str]:
    place = table.columns.index(heading)
    return {row.label: row.entries[place].text for row in table.rows}


def test_a_column_says_where_each_row_was_tuned(tmp_path: Path) -> None:
    expected = {"FedAvg": "yes", "FedAvg (shared)": "shared", "FedAvg (default)": "no", "FedProx": "yes"}
    accuracy, *_ = tables_of(load_run(three_tracks(tmp_path / "here")))
    assert column(accuracy, "Tuned here?") == expected
    elsewhere, *_ = tables_of(load_run(three_tracks(tmp_path / "other", "pacs")))
    assert column(elsewhere, "Tuned here?")["FedAvg (shared)"] == "elsewhere"


def test_a_shared_row_is_not_ranked_beside_the_tuned_one(tmp_path: Path) -> None:
    accuracy, *_ = tables_of(load_run(three_tracks(tmp_path)))
    marks = {row.label: row.entries[accuracy.columns.index("AVG")].mark for row in accuracy.rows}
    assert marks == {"FedAvg": "second", "FedAvg (shared)": "", "FedAvg (default)": "", "FedProx": "best"}


def test_statistics_have_the_effort_until_tuned_fedavgs_validation_accuracy(tmp_path: Path) -> None:
    tables = tables_of(load_run(three_tracks(tmp_path)))
    statistics = next(table for table in tables if table.name == "statistics")
    assert column(statistics, "Rounds to target") == {
        "FedAvg": "3",
        "FedAvg (shared)": "",
        "FedAvg (default)": "",
        "FedProx": "–",
    }
    assert column(statistics, "MB to target")["FedAvg"] == "1.5"


def test_the_shared_track_has_every_row_once(tmp_path: Path) -> None:
    track = shared_track(load_run(three_tracks(tmp_path)))
    assert [(cell.label, cell.accuracy(track.domains[0])) for cell in track.cells] == [
        ("FedAvg", 0.4),
        ("FedProx", 0.5),  # its shared setting is the one that was chosen for the suite
    ]
