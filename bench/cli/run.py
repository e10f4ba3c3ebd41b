"""`bench run`: run what is missing of a suite or several, then make their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.cli import options
from bench.cli.request_options import command_of
from bench.runs.request import RunRequest

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from bench.runs.run import RunOutcome


@command_of(RunRequest)
def run(request: RunRequest, dry_run: options.DryRun = False) -> int:
    """Run what is missing of a suite (or of several: --suite A,B), then make its tables."""
    if not dry_run:
        request.begin_ray_early()
    from bench.cli.console import make_console
    from bench.cli.report import print_tables
    from bench.runs.several import preview_suites, run_suites

    console = make_console()
    if dry_run:
        preview_suites(request, console)
        return 0
    with options.stopping(console):
        outcome = run_suites(request, console)
    for each in outcome.runs:
        _show(each, console)
    if outcome.files:
        if outcome.ranking.table is not None:
            print_tables([outcome.ranking.table], console)
        console.say("all suites together:")
        for file in outcome.files:
            console.say(f"  {file}")
    return 1 if any(each.failures for each in outcome.runs) else 0


def _show(outcome: RunOutcome, console: BenchConsole) -> None:
    from bench.cli.report import print_tables

    if outcome.report is not None:
        print_tables(outcome.report.tables, console)
        for warning in outcome.warnings:
            console.say(f"warning: {warning}")
        console.say(f"finished in {outcome.seconds:.0f} s; files:")
        for file in outcome.files:
            console.say(f"  {file}")
        console.say(f"explore: {outcome.explore}")
    for problem in outcome.problems:
        console.say(problem)
