"""`bench tune`: choose hyperparameters on validation data, with the same budget for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.cli import options
from bench.cli.request_options import COUNT_OR_AUTO, LISTED, command_line, command_of
from bench.request import shared
from bench.runs.request import RunRequest
from bench.search.request import ALL, TuneRequest

if TYPE_CHECKING:
    from rich.table import Table

    from bench.search.tuned import Tuned


@command_of(TuneRequest, methods=replace(LISTED, flags=("--methods", "--method")), seeds=COUNT_OR_AUTO)
def tune(request: TuneRequest, dry_run: options.DryRun = False) -> int:
    """Choose hyperparameters on validation data, with the same budget for every method."""
    if not dry_run:
        request.begin_ray_early()
    from bench.cli.console import make_console
    from bench.search.tune import dry_run as preview
    from bench.search.tune import tune as run_searches

    console = make_console()
    if dry_run:
        preview(request, console)
        return 0
    with options.stopping(console):
        outcome = run_searches(request, console)
    if outcome.tuned:
        console.print(tuned_table(outcome.tuned))
    for problem in outcome.incomplete:
        console.say(problem)
    for sentence in outcome.at_bound:
        console.say(sentence)
    if outcome.can_widen:
        console.say(f"widen: {command_line('tune', replace(request, widen=True))}")
    console.say(f"explore: {outcome.explore}")
    if not outcome.incomplete:
        console.say(f"use it: {command_line('run', _run_that_uses(request))}")
    return 1 if outcome.incomplete else 0


def _run_that_uses(request: TuneRequest) -> RunRequest:
    """The run with the chosen values: on the same data and in the same places, with the suite's rounds."""
    own: dict[str, Any] = {
        "methods": None if list(request.methods) == [ALL] else request.methods,
        "sweeps": {},
        "rounds": None,
        "seeds": None,
        "tuned": True,
    }
    return RunRequest(**shared(request, RunRequest) | own)


def tuned_table(outcomes: Sequence[Tuned]) -> Table:
    """What was chosen for each method, and what it cost."""
    from rich.table import Table

    grid = Table("suite", "row", "default", "tuned", "chosen", "trials", "seeds", "rounds", "search", "space")
    for tuned in outcomes:
        spent = tuned.budget
        grid.add_row(
            tuned.suite,
            tuned.row or tuned.method,
            f"{100 * tuned.default.validation:.2f}",
            f"{100 * tuned.best.validation:.2f}",
            _chosen(tuned),
            f"{spent.finished} + {spent.stopped} stopped + {spent.failed} failed"
            + ("" if spent.complete else " (not complete)"),
            str(spent.seeds) if tuned.selection is None else f"{tuned.selection.seeds} ({spent.seeds})",
            str(spent.rounds_spent),
            f"{tuned.how.search}, {tuned.how.scheduler}",
            tuned.how.space,
        )
    return grid


def _chosen(tuned: Tuned) -> str:
    """The chosen values, and which of them lie at an end of their range."""
    from bench.search.progress import settings_text

    ends = [f"⊣ {key} at the {end} end of its range" for key, end in tuned.at_bound.items()]
    return "; ".join([settings_text(tuned.best.set), *ends])
