"""`bench data check|fetch|import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import options
from bench.errors import UserError, nearest

if TYPE_CHECKING:
    from rich.table import Table

    from bench.data.manage import CheckRow

app = typer.Typer(help="Check, fetch or import the files of a dataset.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of a dataset.")]
NameOrPath = Annotated[
    str, typer.Argument(help="Name of a dataset, or path of your own folder, archive or .npz file.")
]

EACH_CLASS_LISTED = 20
"""Classes whose counts are listed one by one; of more, the smallest and the largest are given."""


@app.command(name="check")
def check_command(name: NameOrPath, data_root: options.DataRoot = None) -> None:
    """Read every file and compare the sizes with the published ones."""
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
    """Returns 1 if anything differs from the published sizes; a UserError if nothing can be read at all."""
    from bench.cli.console import make_console
    from bench.data import dataset_names, manage

    rows = manage.check(name, root) if name in dataset_names() else _own(name, root)
    if all(row.found is None for row in rows):
        raise UserError(rows[0].status)
    make_console().print(_table(rows))
    return 0 if all(row.status == manage.OK for row in rows) else 1


def _own(path: str, root: Path | None) -> list[CheckRow]:
    """The splits of the user's own file or folder."""
    from bench.data import dataset_names, manage

    if not Path(path).exists():
        raise UserError(
            f"unknown dataset '{path}', and no such file or folder; {nearest(path, dataset_names())}"
        )
    kind = "arrays" if path.endswith(".npz") else "folder"
    return manage.check(kind, root, {"path": path})


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


def fetch(name: str, root: Path | None) -> None:
    from bench.cli.console import make_console
    from bench.data import manage

    console = make_console()
    for file in manage.fetch(name, _required(root)):
        console.say(f"fetched {file}")


def take_in(name: str, path: Path, root: Path | None, link: bool) -> None:
    """Imports the files and reports what they contain, and how that differs from what was published."""
    from bench.cli.console import make_console
    from bench.data import manage
    from bench.text import counted

    imported = manage.import_data(name, path, _required(root), link)
    console = make_console()
    console.print(_table([row for row in imported.rows if row.found is not None]))
    samples = sum(row.found or 0 for row in imported.rows)
    domains = len({row.domain for row in imported.rows if row.found is not None})
    console.say(
        f"{'linked' if link else 'copied'} {path} to {imported.target}: "
        f"{samples:,} samples in {counted(domains, 'domain')}"
    )
    if imported.differences:
        console.say(f"sizes differ from the published ones: {'; '.join(imported.differences)}")


def _required(root: Path | None) -> Path:
    if root is None:
        raise UserError("the folder for the data is unknown; give --data-root DIR or set BENCH_DATA_ROOT")
    return root
