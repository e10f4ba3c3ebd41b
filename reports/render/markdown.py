"""A table in GitHub's Markdown."""

import re
from collections.abc import Iterable, Sequence

from bench.text import one_line
from reports.tables.table import Entry, Row, Table


def to_markdown(table: Table) -> str:
    """Caption, a pipe table padded to be readable as plain text, and footnotes; bounds are in italics."""
    headings = ["Method", *map(escape, table.columns)]
    lines = pipe_table(headings, [[_label(row), *map(_value, row.entries)] for row in table.rows])
    footnotes = [f"- {f'{_signs((note.sign,))} {escape(note.text)}'.strip()}" for note in table.footnotes]
    return "\n".join([escape(table.caption), "", *lines, "", *footnotes]) + "\n"


def pipe_table(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Lines of ready Markdown; the first `texts` columns are words to the left, the others numbers."""
    grid = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        _line(
            text.ljust(width) if place < texts else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in grid
    ]
    rule = _line(
        "-" * width if place < texts else "-" * (width - 1) + ":" for place, width in enumerate(widths)
    )
    return [lines[0], rule, *lines[1:]]


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _label(row: Row) -> str:
    label = escape(row.label)
    return (f"*{label}*" if row.bound else label) + _signs(row.signs)


def _value(entry: Entry) -> str:
    text = escape(entry.text)
    if entry.mark == "best":
        text = f"**{text}**"
    elif entry.mark == "second":
        text = f"<ins>{text}</ins>"
    return text + _signs(entry.signs)


def _signs(signs: tuple[str, ...]) -> str:
    shown = ", ".join(filter(None, signs))
    return f"<sup>{escape(shown)}</sup>" if shown else ""


def escape(text: str) -> str:
    """The text on one line, so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>|~&])", r"\\\1", one_line(text))
