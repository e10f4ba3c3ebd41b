"""Tables that display themselves in a notebook and convert to pandas."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from reports.render.csv_rows import HEADER, entries_of
from reports.render.html import to_html
from reports.render.markdown import to_markdown
from reports.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ShownTable(Table):
    """A table that displays itself in a notebook."""

    def _repr_html_(self) -> str:
        return to_html(self)

    def _repr_markdown_(self) -> str:
        return to_markdown(self)

    def frame(self) -> pd.DataFrame:
        """One row per method and column of the table, with the unrounded numbers of the CSV file.

        `frame().pivot(index="label", columns="column", values="mean")` has the table's shape again.
        """
        import pandas as pd

        frame = pd.DataFrame(list(entries_of(self)), columns=list(HEADER))
        numbers = ["mean", "std", "low", "high", "p", "p_best"]
        return frame.astype(dict.fromkeys(numbers, "float64"))


def shown(table: Table) -> ShownTable:
    """The same table as one that displays itself."""
    return ShownTable(**{field.name: getattr(table, field.name) for field in fields(Table)})
