"""`bench study`: tune, run and report on one suite or several, as one resumable command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.cli import options
from bench.cli.request_options import command_of
from bench.studies.request import StudyRequest

if TYPE_CHECKING:
    from bench.cli.console import BenchConsole
    from bench.studies.study import StudyOutcome


@command_of(StudyRequest)
def study(request: StudyRequest, dry_run: options.DryRun = False) -> int:
    """Tune all methods with equal budgets, run tuned and default rows, and report; again: what is missing."""
    from bench.cli.console import make_console
    from bench.studies.study import preview
    from bench.studies.study import study as run_study

    console = make_console()
    if dry_run:
        preview(request, console)
        return 0
    with options.stopping(console):
        outcome = run_study(request, console)
    _show(outcome, console)
    return 0 if outcome.complete else 1


def _show(outcome: StudyOutcome, console: BenchConsole) -> None:
    from bench.cli.report import print_tables
    from bench.cli.tune import tuned_table

    if tuned := [found for each in outcome.suites for found in each.tuned]:
        console.print(tuned_table(tuned))
    for each in outcome.suites:
        if each.report:
            print_tables(each.report.tables, console)
    if len(outcome.suites) > 1 and outcome.ranking.table is not None:
        print_tables([outcome.ranking.table], console)
    for file in outcome.files:
        console.say(f"  {file}")
    for each in outcome.suites:
        for problem in each.problems:
            console.say(problem)
