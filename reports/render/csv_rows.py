"""A table's numbers as they are, not as they are shown: a line for each method and column."""

import csv
import io

from reports.tables.table import Table, plain_number

HEADER = (
    *("suite", "table", "variant", "method", "label", "column"),
    *("mean", "std", "n", "low", "high", "p", "p_best"),
)


def to_csv(table: Table, header: bool = True) -> str:
    """Numbers empty where there are none; `n` is the number of seeds, `low` and `high` the 95 % interval.

    A tick counts as 1 and its absence as 0.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(HEADER)
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            low, high = cell.interval or (None, None)
            writer.writerow(
                (
                    *(table.suite, table.name, table.variant, row.method, row.label, column),
                    *(plain_number(cell.mean), plain_number(cell.std), cell.n),
                    *map(plain_number, (low, high, cell.p, cell.p_best)),
                )
            )
    return text.getvalue()
