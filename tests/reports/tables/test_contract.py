"""Methods that have not passed `bench check` are marked in every table."""

from pathlib import Path
from typing import Any

import pytest

from bench.records.reader import load_run
from reports.render import to_html, to_latex, to_markdown
from reports.tables.kinds import tables_of
from reports.tables.rank_table import ranking_table
from reports.tables.table import Table
from tests.kit.run_folders import Planned, write_run
from tests.kit.tables import FEDAVG, FEDLSA, FEDPROX, notes, row, seeds

SAID = "‡ the method has not passed `bench check`: Mine."


def tables(path: Path, contract: str | None, **options: Any) -> list[Table]:
    cells = [*seeds("fedavg", FEDAVG), *seeds("mine", FEDLSA, label="Mine", contract=contract)]
    return tables_of(load_run(write_run(path, cells, **options)))


@pytest.mark.parametrize("contract", ["failed", "unchecked"])
def test_a_method_that_has_not_passed_is_marked_with_one_sentence(tmp_path: Path, contract: str) -> None:
    for table in tables(tmp_path, contract):
        assert row(table, "Mine").signs == ("‡",) and row(table, "FedAvg").signs == ()
        assert notes(table).count(SAID) == 1


@pytest.mark.parametrize("contract", [None, "passed"])
def test_a_method_that_has_passed_or_is_shipped_has_no_mark(tmp_path: Path, contract: str | None) -> None:
    for table in tables(tmp_path, contract):
        assert row(table, "Mine").signs == ()
        assert not [note for note in notes(table) if "bench check" in note]


def test_the_mark_is_in_every_format(tmp_path: Path) -> None:
    table = tables(tmp_path, "failed")[0]
    assert "| Mine<sup>‡</sup>" in to_markdown(table)
    assert r"Mine\textsuperscript{\ddag{}}" in to_latex(table) and "?" not in to_latex(table)
    assert "Mine<sup>‡</sup>" in to_html(table)


def test_a_wrapped_method_that_has_no_row_of_its_own_is_named(tmp_path: Path) -> None:
    cells = [*seeds("fedavg", FEDAVG), *seeds("ggeur+fedavg", FEDLSA, label="Mine", contract="unchecked")]
    run = load_run(write_run(tmp_path, cells, table={"kind": "wrapped", "wrapper": "ggeur"}))
    assert SAID in notes(tables_of(run)[0])


def test_the_mark_is_in_a_ranking_too(tmp_path: Path) -> None:
    def run(suite: str) -> Path:
        cells: list[Planned] = [
            *seeds("fedavg", FEDAVG, dataset=suite),
            *seeds("fedprox", FEDPROX, dataset=suite),
        ]
        mine = seeds("mine", FEDLSA, label="Mine", contract="failed", dataset=suite)
        return write_run(tmp_path / suite, cells + mine, suite=suite)

    table = ranking_table([load_run(run("one")), load_run(run("two"))])
    assert table is not None
    assert row(table, "Mine").signs == ("‡",) and row(table, "FedAvg").signs == () and SAID in notes(table)
