"""A table in GitHub's Markdown."""

import re

from bench.words import one_line
from reports.tables.table import Entry, Row, Table


def to_markdown(table: Table) -> str:
    """Caption, a pipe table padded to be readable as plain text, and footnotes; bounds are in italics."""
    grid = [["Method", *map(_escape, table.columns)]]
    grid += [[_label(row), *map(_value, row.entries)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        _line([label.ljust(widths[0]), *(text.rjust(w) for text, w in zip(texts, widths[1:], strict=True))])
        for label, *texts in grid
    ]
    rule = _line(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    footnotes = [f"- {f'{_signs((note.sign,))} {_escape(note.text)}'.strip()}" for note in table.footnotes]
    return "\n".join([_escape(table.caption), "", lines[0], rule, *lines[1:], "", *footnotes]) + "\n"


def _line(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _label(row: Row) -> str:
    label = _escape(row.label)
    return (f"*{label}*" if row.bound else label) + _signs(row.signs)


def _value(entry: Entry) -> str:
    text = _escape(entry.text)
    if entry.mark == "best":
        text = f"**{text}**"
    elif entry.mark == "second":
        text = f"<ins>{text}</ins>"
    return text + _signs(entry.signs)


def _signs(signs: tuple[str, ...]) -> str:
    shown = ", ".join(filter(None, signs))
    return f"<sup>{_escape(shown)}</sup>" if shown else ""


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&])", r"\\\1", one_line(text))
