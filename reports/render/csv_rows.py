"""The unrounded numbers of a table as CSV: one line per method and column."""

import csv
import io
from collections.abc import Iterator

from reports.tables.table import Table, plain_number

HEADER = (
    *("suite", "table", "variant", "method", "label", "column"),
    *("mean", "std", "n", "low", "high", "p", "p_best"),
)


def to_csv(table: Table, header: bool = True) -> str:
    """The table as CSV; `n` is the number of seeds, `low` and `high` are the 95 % interval.

    Missing numbers are empty; a tick counts as 1 and its absence as 0.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(HEADER)
    for entry in entries_of(table):
        writer.writerow(
            plain_number(value) if value is None or isinstance(value, float) else value for value in entry
        )
    return text.getvalue()


def entries_of(table: Table) -> Iterator[tuple[str | float | None, ...]]:
    """One tuple per method and column, as HEADER names its parts; None where there is no number."""
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            yield (
                *(table.suite, table.name, table.variant, row.method, row.label, column),
                *(entry.mean, entry.std, entry.n),
                *(entry.interval or (None, None)),
                *(entry.p, entry.p_best),
            )
