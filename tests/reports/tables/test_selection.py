"""The table of selection rules, against rounds chosen by hand."""

from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.tables.selection import selection_table
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, entry, notes, seeds, texts

LINES: list[dict[str, Any]] = [
    {"round": 1, "test": {"mnist": 0.5, "fonts": 0.3}, "validation": 0.6},
    {"round": 2, "test": {"mnist": 0.7, "fonts": 0.5}, "validation": 0.7},
    {"round": 3, "test": {"mnist": 0.8, "fonts": 0.6}, "validation": 0.7},
    {"round": 4, "validation": 0.9},
    {"round": 5, "test": {"mnist": 0.6, "fonts": 0.4}, "validation": 0.5},
]


def test_every_rule_has_a_column(tmp_path: Path) -> None:
    held_out = Planned(
        "fedavg", 0, (0.6, 0.4), rounds=5, history=LINES, last5=0.54, oracle=0.7, validation=0.2
    )
    table = selection_table(load_run(write_run(tmp_path, [held_out, Planned("fedlsa", 0, FEDLSA[0])])), "")
    assert table.columns == ("Final", "Last 5", "Best on validation", "Oracle (do not compare)")
    # round 4 was not tested, and of rounds 2 and 3 the earlier counts
    assert texts(table, "FedAvg") == [
        "50.00",
        "54.00",
        "60.00",
        "70.00",
    ]
    assert entry(table, "FedLSA", "Best on validation").text == ""
    assert any("not to be compared" in note for note in notes(table))


def test_only_what_can_be_compared_is_marked(tmp_path: Path) -> None:
    cells = seeds("fedavg", FEDAVG, last5=0.58, oracle=0.7) + seeds("fedlsa", FEDLSA, last5=0.7, oracle=0.8)
    table = selection_table(load_run(write_run(tmp_path, cells)), "")
    assert table.columns == ("Final", "Last 5", "Oracle (do not compare)")
    marks = [entry(table, "FedLSA", name).mark for name in table.columns]
    assert marks == ["best", "best", ""]
