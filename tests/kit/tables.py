"""Accuracies of a few methods for the tests of tables, and ways to look into a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.records.reader import load_run
from reports.tables.kinds import domain_table
from reports.tables.table import Entry, Row, Table
from tests.kit.run_folders import Planned, write_run

FEDAVG = [(0.80, 0.40), (0.82, 0.42), (0.84, 0.38)]
FEDLSA = [(0.90, 0.50), (0.92, 0.52), (0.94, 0.48)]
FEDPROX = [(0.82, 0.38), (0.78, 0.46), (0.86, 0.40)]

FIVE_FEDAVG = [*FEDAVG, (0.81, 0.41), (0.83, 0.39)]
FIVE_FEDLSA = [*FEDLSA, (0.91, 0.51), (0.93, 0.49)]
FIVE_FEDPROX = [*FEDPROX, (0.80, 0.41), (0.84, 0.40)]
"""Five seeds, from which on differences are tested."""


def seeds(method: str, tests: Sequence[Sequence[float]], **options: Any) -> list[Planned]:
    return [Planned(method, seed, test, **options) for seed, test in enumerate(tests)]


def make(path: Path, cells: Sequence[Planned], **options: Any) -> Table:
    """The table of domains of a run with these cells."""
    return domain_table(load_run(write_run(path, cells, **options)))


def row(table: Table, label: str) -> Row:
    return next(row for row in table.rows if row.label == label)


def entry(table: Table, label: str, column: str) -> Entry:
    return row(table, label).entries[table.columns.index(column)]


def texts(table: Table, label: str) -> list[str]:
    return [entry.text for entry in row(table, label).entries]


def notes(table: Table) -> list[str]:
    return [f"{note.sign} {note.text}".strip() for note in table.footnotes]
