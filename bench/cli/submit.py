"""`bench submit`: put the results of a run into the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options


def submit(
    run: Annotated[str, typer.Argument(help="A run folder, or the name of a suite below --runs.")],
    results: Annotated[Path, typer.Option(help="Folder of the results files.")] = Path("results"),
    root: options.Runs = Path("runs"),
    force: Annotated[
        bool, typer.Option("--force", help="Take results of code that is not committed.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put the run in place of what the file holds.")
    ] = False,
    rerun_sd: Annotated[
        float | None,
        typer.Option(help="Standard deviation of reruns on other machines, in points of AVG, if measured."),
    ] = None,
) -> None:
    """Check a finished run and write its cells to results/SUITE.jsonl, beside those already there."""
    from bench.cli.console import make_console
    from bench.cli.report import run_directory
    from bench.studies.submission import submit as write
    from bench.words import counted

    done = write(run_directory(run, root), results, force, replace, rerun_sd)
    console = make_console()
    console.say(f"{done.file}: {counted(done.added, 'cell')} added, {done.total} in all")
    console.say(f"check it: bench verify {done.file}")
