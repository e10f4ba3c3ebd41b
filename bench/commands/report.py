"""`bench report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.console import BenchConsole, make_console
from bench.errors import UserError, nearest
from bench.running import write_reports
from reports.records import load_run
from reports.render.terminal import to_terminal
from reports.tables import tables_of


def report_runs(names: Sequence[str], formats: Sequence[str], out: Path | None, root: Path) -> None:
    if not formats:
        raise UserError("--format is empty; give one or more of md, latex, csv and html, separated by commas")
    console = make_console()
    for directory in [run_directory(name, root) for name in names]:
        target = out / directory.name if out and len(names) > 1 else out
        files = write_reports(directory, formats, target)
        print_tables(directory, console)
        for file in files:
            console.say(f"  {file}")


def print_tables(directory: Path, console: BenchConsole) -> None:
    for table in tables_of(load_run(directory)):
        console.print()
        console.print(to_terminal(table))


def run_directory(name: str, root: Path) -> Path:
    """A run by its folder, or by the name of its suite below the folder of the runs."""
    for candidate in (Path(name), root / name):
        if (candidate / "plan.json").is_file():
            return candidate
    known = [file.parent.name for file in root.glob("*/plan.json")]
    raise UserError(f"no run '{name}' here or in {root}; {nearest(name, known)}")
