"""`bench data check|fetch|import`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bench.cli.request_options import command_of
from bench.data.request import CheckRequest, FetchRequest, ImportRequest

if TYPE_CHECKING:
    from rich.table import Table

    from bench.data.manage import CheckRow

app = typer.Typer(help="Check, fetch or import the files of a dataset.", no_args_is_help=True)

EACH_CLASS_LISTED = 20
"""Classes whose counts are listed one by one; of more, the smallest and the largest are given."""


@app.command()
@command_of(CheckRequest, positional=("name",))
def check(request: CheckRequest) -> int:
    """Read every file and compare the sizes with the published ones."""
    from bench.cli.console import make_console
    from bench.data import manage

    console = make_console()
    rows = manage.check(request, console)
    console.print(_table(rows))
    return 0 if all(row.status == manage.OK for row in rows) else 1


@app.command()
@command_of(FetchRequest, positional=("name",))
def fetch(request: FetchRequest) -> None:
    """Download a dataset, or say where to get it."""
    from bench.cli.console import make_console
    from bench.data import manage

    manage.fetch(request, make_console())


@app.command(name="import")
@command_of(ImportRequest, positional=("name", "path"))
def import_(request: ImportRequest) -> None:
    """Check a folder or an archive and put it where the suites find it."""
    from bench.cli.console import make_console
    from bench.data import manage
    from bench.text import counted

    console = make_console()
    imported = manage.import_data(request, console)
    rows = [row for row in imported.rows if row.found is not None]
    console.print(_table(rows))
    samples = sum(row.found or 0 for row in rows)
    domains = len({row.domain for row in rows})
    console.say(
        f"{'linked' if request.link else 'copied'} {request.path} to {imported.target}: "
        f"{samples:,} samples in {counted(domains, 'domain')}"
    )
    if imported.differences:
        console.say(f"sizes differ from the published ones: {'; '.join(imported.differences)}")


def _table(rows: list[CheckRow]) -> Table:
    from rich.table import Table

    grid = Table("domain", "split", "expected", "found", "status", "per class")
    for row in rows:
        expected = "–" if row.expected is None else str(row.expected)
        found = "–" if row.found is None else str(row.found)
        grid.add_row(row.domain, row.split, expected, found, row.status, _per_class(row))
    return grid


def _per_class(row: CheckRow) -> str:
    numbers = list(row.per_class.values())
    if len(numbers) <= EACH_CLASS_LISTED:
        return " ".join(map(str, numbers))
    least, most = min(numbers), max(numbers)
    each = str(least) if least == most else f"{least} to {most}"
    return f"{each} in each of {len(numbers)} classes"
