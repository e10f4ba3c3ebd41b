"""`bench tune`: choose hyperparameters on validation data, with the same budget for every method."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.cli import options
from bench.cli.request_options import LISTED, command_of
from bench.search.request import ALL, TuneRequest

if TYPE_CHECKING:
    from rich.table import Table

    from bench.search.tune import TuneOutcome
    from bench.search.tuned import Tuned


@command_of(TuneRequest, methods=replace(LISTED, flags=("--methods", "--method")))
def tune(request: TuneRequest) -> int:
    """Choose hyperparameters on validation data, with the same budget for every method."""
    request.begin_ray_early()
    from bench.cli.console import make_console
    from bench.search.tune import tune as run_searches

    console = make_console()
    with options.stopping(console):
        outcome = run_searches(request, console)
    if outcome.tuned:
        console.print(tuned_table(outcome.tuned))
    for problem in outcome.incomplete:
        console.say(problem)
    console.say(f"explore: {outcome.explore}")
    if not outcome.incomplete:
        console.say(f"use it: {_command_that_uses(outcome, request)}")
    return 1 if outcome.incomplete else 0


def _command_that_uses(outcome: TuneOutcome, request: TuneRequest) -> str:
    from bench.search.tuned import FOLDER

    command = f"bench run --suite {request.suite} --tuned"
    if list(request.methods) != [ALL]:  # as they were given: a file of one's own is known by its path only
        command += f" --methods {shlex.quote(','.join(request.methods))}"
    return command if request.tuned_dir == FOLDER else f"{command} --tuned-dir {request.tuned_dir}"


def tuned_table(outcomes: Sequence[Tuned]) -> Table:
    """What was chosen for each method, and what it cost."""
    from rich.table import Table

    from bench.search.progress import settings_text

    grid = Table("suite", "row", "default", "tuned", "chosen", "trials", "rounds", "search", "space")
    for tuned in outcomes:
        spent = tuned.budget
        grid.add_row(
            tuned.suite,
            tuned.row or tuned.method,
            f"{100 * tuned.default.validation:.2f}",
            f"{100 * tuned.best.validation:.2f}",
            settings_text(tuned.best.set),
            f"{spent.finished} + {spent.stopped} stopped + {spent.failed} failed"
            + ("" if spent.complete else " (not complete)"),
            str(spent.rounds_spent),
            f"{tuned.how.search}, {tuned.how.scheduler}",
            tuned.how.space,
        )
    return grid
