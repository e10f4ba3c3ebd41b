"""A table's unrounded numbers: a line for each method and column."""

import csv
import io

from reports.table import Table

HEADER = ("variant", "method", "label", "column", "mean", "std", "n")


def to_csv(table: Table, header: bool = True) -> str:
    """Means and standard deviations in percent, empty where there is none; `n` is the number of seeds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(HEADER)
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            writer.writerow((table.variant, row.method, row.label, column, cell.mean, cell.std, cell.n))
    return text.getvalue()
