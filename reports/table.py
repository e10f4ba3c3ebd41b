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

    @property
    def rows(self) -> Iterator[Row]:
        """All rows, top to bottom."""
        return (row for section in self.sections for row in section)


def number(value: float) -> str:
    """Two decimals, as papers print accuracies; never a negative zero."""
    text = f"{value:.2f}"
    return text.replace("-", "−") if float(text) else "0.00"


def signed_number(value: float) -> str:
    """Two decimals with the sign written out."""
    text = number(value)
    return f"+{text}" if value > 0 and text != "0.00" else text
