"""`bench run`: run what is missing of a suite, then make its tables."""

from __future__ import annotations

from bench.cli import options
from bench.cli.request_options import command_of
from bench.runs.request import RunRequest


@command_of(RunRequest)
def run(request: RunRequest, dry_run: options.DryRun = False) -> int:
    """Run what is missing of a suite, then make its tables."""
    if not dry_run:
        request.begin_ray_early()
    from bench.cli.console import make_console
    from bench.cli.report import print_tables
    from bench.runs.run import preview
    from bench.runs.run import run as run_suite

    console = make_console()
    if dry_run:
        preview(request, console)
        return 0
    with options.stopping(console):
        outcome = run_suite(request, console)
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
    return 1 if outcome.failures else 0
