"""The unrounded numbers of a table as CSV: one line per method and column."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.text import one_line
from reports.tables.table import Table, plain_number

HEADER = (
    *("suite", "table", "variant", "method", "label", "column"),
    *("mean", "std", "n", "low", "high", "p", "p_best"),
)
FORMULA = ("=", "+", "-", "@")
"""What a formula begins with, for the common spreadsheets."""


def to_csv(table: Table, header: bool = True) -> str:
    """The table as CSV; `n` is the number of seeds, `low` and `high` are the 95 % interval.

    Missing numbers are empty; a tick counts as 1 and its absence as 0.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(HEADER)
    for entry in entries_of(table):
        writer.writerow(_as_text(value) if isinstance(value, str) else plain_number(value) for value in entry)
    return text.getvalue()


def lines_as_csv(columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines with a value per column as CSV; what a line does not have is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_as_text, columns))
    for line in lines:
        writer.writerow(_field(line.get(column)) for column in columns)
    return text.getvalue()


def _field(value: Any) -> str:
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return plain_number(value) if is_number else _as_text(str(value))


def _as_text(text: str) -> str:
    """A text as spreadsheets show it: with an apostrophe before what they would compute as a formula."""
    text = one_line(text)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def entries_of(table: Table) -> Iterator[tuple[str | float | None, ...]]:
    """One tuple per method and column, as HEADER names its parts; None where there is no number."""
    for row in (*table.rows, *table.hidden):
        for column, entry in zip(table.columns, row.entries, strict=True):
            yield (
                *(table.suite, table.name, table.variant, row.method, row.label, column),
                *(entry.mean, entry.std, entry.n),
                *(entry.interval or (None, None)),
                *(entry.p, entry.p_best),
            )
