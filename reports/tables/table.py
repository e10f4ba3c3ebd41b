"""A table as data, independent of the format it is written in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MISSING = "–"

Mark = Literal["", "best", "second"]


@dataclass(frozen=True)
class Entry:
    """One value: unrounded numbers, the `text` to show, and `signs` that refer to footnotes."""

    text: str
    mean: float | None = None
    std: float | None = None
    n: int = 0
    interval: tuple[float, float] | None = None
    """95 % interval of the mean over seeds."""
    p: float | None = None
    """Corrected p-value of the paired test over seeds against the table's `reference`."""
    p_best: float | None = None
    """Corrected p-value of the paired test against the best method."""
    mark: Mark = ""
    signs: tuple[str, ...] = ()
    missing: bool = False


@dataclass(frozen=True)
class Row:
    """A method and its values, one for each column of the table."""

    method: str
    label: str
    entries: tuple[Entry, ...]
    bound: bool = False
    signs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Footnote:
    """A remark under the table; without a sign it concerns the whole table."""

    text: str
    sign: str = ""


@dataclass(frozen=True)
class Table:
    """A caption, columns, rows in sections separated by a rule, and footnotes."""

    suite: str
    variant: str
    caption: str
    columns: tuple[str, ...]
    sections: tuple[tuple[Row, ...], ...]
    footnotes: tuple[Footnote, ...]
    name: str = "accuracy"
    """What kind of table it is: accuracy, statistics, selection, sweep, importance or ranking."""
    groups: tuple[str, ...] = ()
    """The heading that neighbouring columns share, one per column; "" for a column of its own."""
    reference: str = ""
    """What the p-values of the entries compare with."""
    hidden: tuple[Row, ...] = ()
    """Further rows of a long table, which only its numbers for programs have."""

    @property
    def rows(self) -> Iterator[Row]:
        """All rows, top to bottom."""
        return (row for section in self.sections for row in section)

    @property
    def headings(self) -> list[tuple[str, list[str]]]:
        """Pairs of a shared heading and the headings below it; "" for a column of its own."""
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
    """Twelve digits, beyond which libraries and machines differ, for programs; empty for None."""
    return "" if value is None else f"{value:.12g}"
