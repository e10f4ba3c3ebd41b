"""Writes tables to files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.records.files import write_atomically
from reports.render import to_csv, to_latex, to_markdown
from reports.render.csv_rows import lines_as_csv
from reports.tables.table import Table


def _csv(tables: Sequence[Table]) -> str:
    return "".join(to_csv(table, header=index == 0) for index, table in enumerate(tables))


_FORMATS: dict[str, tuple[str, Callable[[Sequence[Table]], str]]] = {
    "md": (".md", lambda tables: "\n".join(map(to_markdown, tables))),
    "latex": (".tex", lambda tables: "\n".join(map(to_latex, tables))),
    "csv": (".csv", _csv),
}
PAGE = "html"
"""The format of the page, which holds more than tables and is not written here."""


def write_tables(tables: Sequence[Table], name: str, formats: Sequence[str], folder: Path) -> list[Path]:
    """Write the tables: one file per format, with all tables in it."""
    check_formats(formats)
    written = []
    for kind in (kind for kind in formats if kind != PAGE):
        suffix, render = _FORMATS[kind]
        path = folder / f"{name}{suffix}"
        write_atomically(path, render(tables))
        written.append(path)
    return written


def write_long_table(columns: Sequence[str], lines: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write lines of a table as CSV; columns that a line does not have are empty."""
    write_atomically(path, lines_as_csv(columns, lines))
    return path


def check_formats(formats: Sequence[str]) -> None:
    """Refuse a name that is not a format."""
    known = (*_FORMATS, PAGE)
    for name in formats:
        if name not in known:
            raise UserError(f"unknown format '{name}'; {nearest(name, known)}")
