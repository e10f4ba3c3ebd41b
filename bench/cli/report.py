"""`bench report`: make tables, figures and the page again from the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.cli.request_options import command_of
from bench.results.request import ReportRequest

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from reports.tables.table import Table


@command_of(ReportRequest, positional=("runs",))
def report(request: ReportRequest) -> None:
    """Make tables, figures and the page of runs again from their records; runs of one suite are merged."""
    from bench.cli.console import make_console
    from bench.results.report import report as report_runs

    console = make_console()
    outcome = report_runs(request, console)
    for each in outcome.reports:
        print_tables(each.tables, console)
    for note in outcome.notes:
        console.say(note)
    if len(outcome.reports) > 1 and outcome.ranking.table is not None:
        print_tables([outcome.ranking.table], console)
    for file in outcome.files:
        console.say(f"  {file}")


def print_tables(tables: Sequence[Table], console: BenchConsole) -> None:
    """Print the tables of results, and the statistics of a single variant; the rest is left to the files."""
    from reports.render.terminal import to_terminal

    statistics = [table for table in tables if table.name == "statistics"]
    shown = [table for table in tables if table.name not in ("statistics", "selection")]
    for table in shown + (statistics if len(statistics) == 1 else []):
        console.print()
        console.print(to_terminal(table))
    if len(statistics) > 1:
        console.say(f"The statistics of {len(statistics)} variants are in the files.")
