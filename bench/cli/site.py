"""`bench site`: all results as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.records.reader import Run
    from reports.site import MethodInfo


def site(
    results: Annotated[Path, typer.Argument(help="Folder of the results files.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("site"),
) -> None:
    """Write a static, searchable site of all results; open its index.html, no server is needed."""
    from bench.cli.console import make_console
    from bench.records.results_file import SUFFIX, read_results
    from bench.text import counted
    from reports.site import write_site

    files = sorted(results.glob(f"*{SUFFIX}"))
    if not files:
        raise UserError(
            f"no results files in {results}; write one with `bench submit RUN --results {results}`"
        )
    runs = [read_results(file) for file in files]
    index = write_site(runs, _method_infos(runs), out)
    make_console().say(f"{counted(len(runs), 'suite')}: {index}")


def _method_infos(runs: list[Run]) -> dict[str, MethodInfo]:
    """Of all methods that are installed, and of those with results as far as they are."""
    from bench.method_pages.method_info import method_info
    from bench.suite.methods import METHODS

    shown = {cell.method for run in runs for cell in run.cells}
    infos = {}
    for name in sorted({*METHODS.names(), *shown}):
        try:
            infos[name] = method_info(name)
        except UserError:  # somebody else's method, which has results but is not installed here
            continue
    return infos
