"""A table as data, whatever it will be written as."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MISSING = "–"

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Cell:
    """One value: numbers unrounded, `text` as it is to be read, `signs` that point to footnotes."""

    text: str
    mean: float | None = None
    std: float | None = None
    n: int = 0
    interval: tuple[float, float] | None = None
    """95 % interval of the mean over seeds."""
    p: float | None = None
    """Of the paired test against the table's `reference`, corrected."""
    p_best: float | None = None
    """Of the paired test against the best method, corrected."""
    mark: Mark = ""
    signs: tuple[str, ...] = ()
    missing: bool = False


@dataclass(frozen=True)
class Row:
    """A method and its values, one for each column of the table."""

    method: str
    label: str
    cells: tuple[Cell, ...]
    bound: bool = False
    signs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Footnote:
    """A remark under the table; without a sign it concerns the whole table."""

    text: str
    sign: str = ""


@dataclass(frozen=True)
class Table:
    """Rows in sections that are set apart by a rule."""

    suite: str
    variant: str
    caption: str
    columns: tuple[str, ...]
    sections: tuple[tuple[Row, ...], ...]
    footnotes: tuple[Footnote, ...]
    name: str = "accuracy"
    """What kind of table it is: accuracy, statistics or ranking."""
    groups: tuple[str, ...] = ()
    """The words that neighbouring columns begin with and share as a heading; "" for a column alone."""
    reference: str = ""
    """What the cells' `p` compares with."""

    @property
    def rows(self) -> Iterator[Row]:
        """All rows, top to bottom."""
        return (row for section in self.sections for row in section)

    @property
    def headings(self) -> list[tuple[str, list[str]]]:
        """The columns in their groups: a shared heading and what stands under it; "" for a column alone."""
        found: list[tuple[str, list[str]]] = []
        for column, group in zip(self.columns, self.groups or [""] * len(self.columns), strict=True):
            if not group or not found or found[-1][0] != group:
                found.append((group, []))
            found[-1][1].append(column.removeprefix(group).strip())
        return found


def number(value: float) -> str:
    """Two decimals, as papers print accuracies; never a negative zero."""
    text = f"{value:.2f}"
    return text.replace("-", "−") if float(text) else "0.00"


def signed_number(value: float) -> str:
    """Two decimals with the sign written out."""
    text = number(value)
    return f"+{text}" if value > 0 and text != "0.00" else text


def probability(p: float) -> str:
    """A p-value with three decimals; never 0."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def plain_number(value: float | None) -> str:
    """For programs: twelve digits, beyond which libraries and machines differ; empty if there is none."""
    return "" if value is None else f"{value:.12g}"
