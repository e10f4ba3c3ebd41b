"""A table for a terminal of any width."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reports.tables.table import Entry, Row, Table

_STYLES = {"": "", "best": "bold", "second": "underline"}


def to_terminal(table: Table) -> RenderableType:
    """The table with rules between its sections, the caption above and the footnotes below."""
    footnotes = [Text(f"{note.sign} {note.text}".strip(), style="dim") for note in table.footnotes]
    return Group(Text(table.caption), _Grid(table), *footnotes)


class _Grid:
    """The values; columns that do not fit continue below, so that no number is cut."""

    def __init__(self, table: Table) -> None:
        self.sections = table.sections
        # a shared heading is repeated above each of its columns, because the grid may be split between them
        self.headings = [
            Text("\n".join(filter(None, (group, name)))) for group, names in table.headings for name in names
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        unbounded = options.update(max_width=10_000)
        first = 0
        while first < len(self.headings):
            end = len(self.headings)
            part = self._part(first, end)
            while end > first + 1 and console.measure(part, options=unbounded).maximum > options.max_width:
                end -= 1
                part = self._part(first, end)
            yield part
            first = end

    def _part(self, first: int, end: int) -> RichTable:
        grid = RichTable(box=box.HORIZONTALS, padding=(0, 0, 0, 1), pad_edge=False)
        grid.add_column("Method", no_wrap=True)
        for heading in self.headings[first:end]:
            grid.add_column(heading, justify="right", no_wrap=True)
        for section in self.sections:
            for row in section:
                grid.add_row(_label(row), *map(_value, row.entries[first:end]))
            grid.add_section()
        return grid


def _label(row: Row) -> Text:
    return Text.assemble((row.label, "italic" if row.bound else ""), _signs(row.signs))


def _value(entry: Entry) -> Text:
    return Text.assemble((entry.text.replace("± ", "±"), _STYLES[entry.mark]), _signs(entry.signs))


def _signs(signs: tuple[str, ...]) -> tuple[str, str]:
    return f" {', '.join(signs)}" if signs else "", "dim"
