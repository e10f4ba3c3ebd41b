"""`bench data check|fetch|import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options
from bench.errors import UserError

app = typer.Typer(help="Check, fetch or import the files of a dataset.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of a dataset.")]


@app.command(name="check")
def check_command(name: Name, data_root: options.DataRoot = None) -> None:
    """Read every file and compare the counts with the known ones."""
    raise typer.Exit(check(name, data_root))


@app.command(name="fetch")
def fetch_command(name: Name, data_root: options.DataRoot = None) -> None:
    """Download a dataset, or say where to get it."""
    fetch(name, data_root)


@app.command(name="import")
def import_command(
    name: Name,
    path: Annotated[Path, typer.Argument(help="Folder, archive or file to import.")],
    data_root: options.DataRoot = None,
    link: Annotated[bool, typer.Option("--link", help="Link instead of copying.")] = False,
) -> None:
    """Check a folder or an archive and put it where the suites find it."""
    take_in(name, path, data_root, link)


def check(name: str, root: Path | None) -> int:
    """Returns 1 if anything differs from the known counts; there must be something to compare."""
    from rich.table import Table

    from bench.cli.console import make_console
    from bench.data import manage

    rows = manage.check(name, root)
    if all(row.found is None for row in rows):
        raise UserError(rows[0].status)
    grid = Table("domain", "split", "expected", "found", "status", "per class")
    for row in rows:
        expected = "–" if row.expected is None else str(row.expected)
        per_class = " ".join(map(str, row.per_class.values()))
        found = "–" if row.found is None else str(row.found)
        grid.add_row(row.domain, row.split, expected, found, row.status, per_class)
    make_console().print(grid)
    return 0 if all(row.status == "ok" for row in rows) else 1


def fetch(name: str, root: Path | None) -> None:
    from bench.cli.console import make_console
    from bench.data import manage

    console = make_console()
    for file in manage.fetch(name, _required(root)):
        console.say(f"fetched {file}")


def take_in(name: str, path: Path, root: Path | None, link: bool) -> None:
    from bench.cli.console import make_console
    from bench.data import manage

    make_console().say(f"imported {manage.import_data(name, path, _required(root), link)}")


def _required(root: Path | None) -> Path:
    if root is None:
        raise UserError("no folder for the data; give --data-root DIR or set BENCH_DATA_ROOT")
    return root
