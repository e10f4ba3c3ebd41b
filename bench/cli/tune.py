"""`bench tune`: choose hyperparameters on validation data, with the same budget for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bench.cli import options
from bench.cli.request_options import COUNT_OR_AUTO, LISTED, command_line, command_of
from bench.request import shared
from bench.runs.request import SHARED, RunRequest
from bench.search.request import ALL, TuneRequest

if TYPE_CHECKING:
    from rich.table import Table

    from bench.cli.console import BenchConsole
    from bench.search.shared import SharedTuned
    from bench.search.tune import TuneOutcome
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
        if request.shared:
            from bench.search.shared import preview_shared

            preview_shared(request.each_suite(), console)
            return 0
        for each in request.each_suite():
            preview(each, console)
        return 0
    with options.stopping(console):
        if request.shared:
            return _show_shared(request, console)
        outcomes = [(each, run_searches(each, console)) for each in request.each_suite()]
    for each, outcome in outcomes:
        _show(each, outcome, console)
    return 1 if any(outcome.incomplete for _, outcome in outcomes) else 0


def _show(request: TuneRequest, outcome: TuneOutcome, console: BenchConsole) -> None:
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


def _show_shared(request: TuneRequest, console: BenchConsole) -> int:
    from bench.search.shared import tune_shared

    outcome = tune_shared(request.each_suite(), console)
    if outcome.chosen:
        console.print(shared_table(outcome.chosen))
    for problem in outcome.incomplete:
        console.say(problem)
    console.say(f"explore: {outcome.explore}")
    if not outcome.incomplete:
        console.say(f"use it: {command_line('run', _run_that_uses(request, SHARED))}")
    return 1 if outcome.incomplete else 0


def shared_table(chosen: Sequence[SharedTuned]) -> Table:
    """The configuration of each row, and what it reaches on every suite."""
    from rich.table import Table

    from bench.search.progress import settings_text

    suites = list(chosen[0].suites)
    grid = Table("row", "score", "chosen", *(f"{suite} (best there)" for suite in suites))
    for tuned in chosen:
        reached = [
            f"{100 * tuned.suites[suite].validation:.2f} ({100 * tuned.suites[suite].own_best:.2f})"
            for suite in suites
        ]
        grid.add_row(tuned.row, f"{tuned.score:.4f}", settings_text(tuned.set), *reached)
    return grid


def _run_that_uses(request: TuneRequest, tuned: Literal[True, "shared"] = True) -> RunRequest:
    """The run with the chosen values: on the same data and in the same places, with the suite's rounds."""
    own: dict[str, Any] = {
        "methods": None if list(request.methods) == [ALL] else request.methods,
        "sweeps": {},
        "rounds": None,
        "seeds": None,
        "tuned": tuned,
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
