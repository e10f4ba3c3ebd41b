"""`bench report`: make tables, figures and the page again from the records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli import options
from bench.cli.request_options import names

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from bench.records.reader import Run
    from reports.tables.table import Table

MERGED = "merged"


def report(
    runs: Annotated[
        list[str], typer.Argument(help="Run folders, results files, or names of suites below --runs.")
    ],
    formats: Annotated[
        str, typer.Option("--format", help="md, latex, csv, html, separated by commas.")
    ] = "md,latex,csv,html",
    out: Annotated[Path | None, typer.Option(help="Folder for the files; default: the run's own.")] = None,
    root: options.Runs = Path("runs"),
    mix: Annotated[
        bool, typer.Option("--mix", help="Put runs into one table although they are not comparable.")
    ] = False,
    tracking_uri: Annotated[
        str | None,
        typer.Option(
            help="MLflow store to renew the tables in; default: the one beside the run, if it has them."
        ),
    ] = None,
) -> None:
    """Make tables, figures and the page of runs again from their records; runs of one suite are merged."""
    report_runs(runs, names(formats), out, root, mix, tracking_uri)


def report_runs(
    runs: Sequence[str],
    formats: Sequence[str],
    out: Path | None,
    root: Path,
    mix: bool = False,
    tracking_uri: str | None = None,
) -> None:
    from bench.cli.console import make_console
    from bench.records.results_file import load_records
    from bench.records.run_folder import find_run
    from reports.combine.merge import merge_runs
    from reports.report import RankingReport, Report, check_requested

    check_requested(formats)
    console = make_console()
    directories = list(dict.fromkeys(find_run(name, root) for name in runs))
    made = [Report(run) for run in merge_runs([load_records(directory) for directory in directories], mix)]
    for each in made:
        each.check()
    files = []
    for each in made:
        home = each.run.sources[0] if len(each.run.sources) == 1 and each.run.sources[0].is_dir() else None
        target = _target(each.run, home, len(made), out, root)
        files += each.write(formats, target)
        print_tables(each.tables, console)
        if home is not None and home == target:
            _track(home, tracking_uri, console)
    ranking = RankingReport([each.run for each in made])
    if len(made) > 1 and ranking.table is not None:
        files += ranking.write(formats, out or root / MERGED)
        print_tables([ranking.table], console)
    for file in files:
        console.say(f"  {file}")


def _target(run: Run, home: Path | None, groups: int, out: Path | None, root: Path) -> Path:
    """A run's own folder, or for what was merged one that belongs to no run; `--out` instead of either."""
    if out is not None:
        return out / run.suite.name if groups > 1 else out
    return home or root / MERGED / run.suite.name


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


def _track(directory: Path, tracking_uri: str | None, console: BenchConsole) -> None:
    """Update what MLflow shows of the run, where its tables are in MLflow already.

    The folder may come from a stranger, so the address in it is not written to unless the user gives it.
    """
    from bench.tracking.tracker import Tracker, TrackingError, recorded_store

    store = recorded_store(directory)
    tracker = Tracker(tracking_uri, directory.parent)
    if tracking_uri is None and store != tracker.address:
        if store is not None:
            console.say(
                f"the tables in MLflow at {store} stay as they are; give --tracking-uri to renew them"
            )
        return
    try:
        tracker.log_suite(directory)
    except TrackingError as error:
        console.say(f"warning: the tables are not in MLflow: {error}")
