"""Rows of default hyperparameters beside tuned rows of the same methods."""

from pathlib import Path

import pytest
from scipy.stats import ttest_1samp

from bench.records.reader import load_run
from reports.page.command import rerun_commands
from reports.tables.kinds import domain_table, tables_of
from reports.tables.summary import summary_table
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FIVE_FEDAVG, FIVE_FEDLSA, FIVE_FEDPROX, entry, notes, row, seeds

TUNING = {"trials": 8, "selected_on": "validation", "methods": {"fedlsa": {"trials": 8, "set": {"lam": 0.7}}}}
WORSE = [(first - 0.2, second - 0.2) for first, second in FIVE_FEDAVG]


def both() -> list[Planned]:
    return [
        *seeds("fedavg", WORSE, label="FedAvg (default)"),
        *seeds("fedavg", FIVE_FEDAVG, label="FedAvg"),
        *seeds("fedprox", FIVE_FEDPROX, label="FedProx"),
        *seeds("fedlsa", FIVE_FEDLSA, label="FedLSA"),
        *seeds("fedprox", WORSE, label="FedProx (default)"),
        *seeds("fedlsa", FIVE_FEDAVG, label="FedLSA (default)"),
    ]


def test_default_rows_follow_their_tuned_rows_and_are_not_ranked(tmp_path: Path) -> None:
    table = domain_table(load_run(write_run(tmp_path, both(), tuning=TUNING)))
    methods = ("FedAvg", "FedProx", "FedLSA")
    assert [row.label for row in table.rows] == [
        label for method in methods for label in (method, f"{method} (default)")
    ]
    for method in methods:
        assert {each.mark for each in row(table, f"{method} (default)").entries} == {""}
    assert [entry(table, label, "AVG").mark for label in methods] == ["", "second", "best"]


def test_the_reference_is_the_tuned_row_and_holm_counts_tuned_rows_alone(tmp_path: Path) -> None:
    table = domain_table(load_run(write_run(tmp_path, both(), tuning=TUNING)))
    assert table.reference == "FedAvg" and entry(table, "FedLSA", "Δ").text == "+10.00"
    # two tests: FedLSA's p is 0, FedProx's is the larger and counts once
    assert entry(table, "FedProx", "AVG").p == pytest.approx(ttest_1samp([0, 0, 2, -0.5, 1], 0).pvalue)
    assert entry(table, "FedLSA (default)", "AVG").p is None
    assert not any("the first of the rows" in note for note in notes(table))


def test_the_caption_says_which_rows_are_tuned(tmp_path: Path) -> None:
    table = domain_table(load_run(write_run(tmp_path, both(), tuning=TUNING)))
    said = "hyperparameters: tuned (8 trials per method), selected on validation; suite defaults in rows"
    assert f"{said} marked (default);" in table.caption
    assert any(note.startswith("(default): the same method") for note in notes(table))
    assert not any("Mixed" in note for note in notes(table))


def test_the_statistics_show_what_tuning_gained(tmp_path: Path) -> None:
    table = summary_table(load_run(write_run(tmp_path, both(), tuning=TUNING)), "")
    assert entry(table, "FedLSA", "Tuning").text == "+10.00 ± 0.00"
    assert entry(table, "FedLSA (default)", "Tuning").text == ""
    assert entry(table, "FedLSA (default)", "p vs FedAvg").text == ""


def test_a_default_row_is_computed_again_without_the_tuned_values(tmp_path: Path) -> None:
    run = load_run(write_run(tmp_path, both(), tuning=TUNING))
    commands = dict(zip((cell.label for cell in run.cells), rerun_commands(run), strict=True))
    assert "fedlsa.lam=0.7" in commands["FedLSA"] and "lam" not in commands["FedLSA (default)"]


def test_a_default_row_alone_is_an_ordinary_row(tmp_path: Path) -> None:
    cells = seeds("fedavg", FIVE_FEDAVG) + seeds("fedlsa", FIVE_FEDLSA, label="FedLSA (default)")
    table = domain_table(load_run(write_run(tmp_path, cells)))
    assert entry(table, "FedLSA (default)", "AVG").mark == "best"
    assert not any(note.startswith("(default)") for note in notes(table))


def test_wrapped_default_rows_are_families_of_their_own(tmp_path: Path) -> None:
    cells = [
        *seeds("fedavg", FIVE_FEDAVG, label="FedAvg"),
        *seeds("fedavg", WORSE, label="FedAvg (default)"),
        *seeds("ggeur+fedavg", FIVE_FEDLSA, label="GGEUR+FedAvg"),
        *seeds("ggeur+fedavg", FIVE_FEDAVG, label="GGEUR+FedAvg (default)"),
    ]
    layout = {"kind": "wrapped", "wrapper": "ggeur"}
    table, *_ = tables_of(load_run(write_run(tmp_path, cells, table=layout, tuning=TUNING)))
    assert [row.label for row in table.rows] == ["FedAvg", "FedAvg (default)"]
    assert entry(table, "FedAvg", "AVG gain").text == "+10.00 ± 0.00"
    assert entry(table, "FedAvg (default)", "AVG gain").text == "+20.00 ± 0.00"


def test_a_wrapped_default_row_without_its_plain_one_stays_in_the_wrapper_s_column(tmp_path: Path) -> None:
    """A search that keeps the default leaves one plain row, while the wrapped method may have two."""
    cells = [
        *seeds("fedavg", FIVE_FEDAVG, label="FedAvg"),
        *seeds("ggeur+fedavg", FIVE_FEDLSA, label="GGEUR+FedAvg"),
        *seeds("ggeur+fedavg", WORSE, label="GGEUR+FedAvg (default)"),
    ]
    shape = {"kind": "wrapped", "wrapper": "ggeur"}
    (table, *_) = tables_of(load_run(write_run(tmp_path, cells, tuning=TUNING, table=shape)))
    assert [name for name in table.columns if name.startswith("AVG")] == [
        "AVG plain",
        "AVG GGEUR",
        "AVG gain",
    ]
    assert [each.label for each in table.rows] == ["FedAvg", "GGEUR+FedAvg (default)"]
