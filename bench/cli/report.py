"""`bench report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.cli.console import BenchConsole, make_console
from bench.errors import UserError, nearest
from bench.records.beside import find_beside
from bench.records.reader import Run, load_run
from bench.tracking.tracker import Tracker, TrackingError, recorded_store
from reports.combine.merge import merge_runs
from reports.figures import check_figures, write_ranking
from reports.numbers.ranking import rank_runs
from reports.page import write_ranking_page
from reports.render.files import PAGE, check_formats, write_tables
from reports.render.terminal import to_terminal
from reports.tables.kinds import tables_of
from reports.tables.rank_table import NAME as RANKING
from reports.tables.rank_table import ranking_table
from reports.tables.table import Table

MERGED = "merged"


def report_runs(
    names: Sequence[str], formats: Sequence[str], out: Path | None, root: Path, mix: bool = False
) -> None:
    if not formats:
        raise UserError("--format is empty; give one or more of md, latex, csv and html, separated by commas")
    check_formats(formats)
    from bench.runs.drive import write_reports_of  # brings torch along, which `bench compare` has no need of

    console = make_console()
    directories = list(dict.fromkeys(run_directory(name, root) for name in names))
    runs = merge_runs([load_run(directory) for directory in directories], mix)
    own = {str(directory): directory for directory in directories}
    files = []
    for run in runs:
        check_figures(run, find_beside(Path(run.source)))
    for run in runs:
        home = own.get(run.source)
        target = _target(run, home, len(runs), out, root)
        files += write_reports_of(run, formats, target)
        _print(tables_of(run), console)
        if home == target:
            _track(home, console)
    if len(runs) > 1 and (ranking := ranking_table(runs)):
        target = out or root / MERGED
        files += write_tables([ranking], RANKING, formats, target / "tables")
        if PAGE in formats:
            files.append(write_ranking_page(ranking, target / "tables"))
        files += write_ranking(rank_runs(runs), target / "figures")
        _print([ranking], console)
    for file in files:
        console.say(f"  {file}")


def print_tables(directory: Path, console: BenchConsole) -> None:
    _print(tables_of(load_run(directory)), console)


def run_directory(name: str, root: Path) -> Path:
    """A run by its folder, or by the name of its suite below the folder of the runs."""
    for candidate in (Path(name), root / name):
        if (candidate / "plan.json").is_file():
            return candidate
    known = [file.parent.name for file in root.glob("*/plan.json")]
    raise UserError(f"no run '{name}' here or in {root}; {nearest(name, known)}")


def _target(run: Run, home: Path | None, groups: int, out: Path | None, root: Path) -> Path:
    """A run's own folder, or for what was merged one that belongs to no run; `--out` instead of either."""
    if out is not None:
        return out / run.suite.name if groups > 1 else out
    return home or root / MERGED / run.suite.name


def _print(tables: Sequence[Table], console: BenchConsole) -> None:
    """All tables, but the statistics of many variants are left to the files."""
    statistics = [table for table in tables if table.name == "statistics"]
    shown = [table for table in tables if table.name != "statistics"]
    for table in shown + (statistics if len(statistics) == 1 else []):
        console.print()
        console.print(to_terminal(table))
    if len(statistics) > 1:
        console.say(f"The statistics of {len(statistics)} variants are in the files.")


def _track(directory: Path, console: BenchConsole) -> None:
    """Renew what MLflow shows of the run, where its tables are in MLflow already."""
    if (store := recorded_store(directory)) is None:
        return
    tracker = Tracker(store, directory.parent)
    try:
        tracker.log_suite(directory)
    except TrackingError as error:
        console.say(f"warning: the tables are not in MLflow: {error}")
