"""`bench watch`: how far a run has come, here or on another machine that shares the disk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.cli.inspection_requests import WatchRequest
from bench.cli.request_options import command_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.cli.console import BenchConsole
    from bench.records.watching import CellStanding, RunStanding, RunWatch

SHOWN = 30
UNFINISHED = 3
"""The exit code while cells are missing."""


@command_of(WatchRequest, positional=("run",))
def watch(request: WatchRequest) -> int:
    """Show how far a run has come, from its records alone; ends when all cells have ended.

    The exit code is 0 if all cells are done, 1 if some have failed, and 3 if some are missing.
    """
    from bench.cli.console import make_console
    from bench.records.run_folder import find_run
    from bench.records.watching import RunWatch

    console = make_console()
    watched = RunWatch(find_run(request.run, request.root))
    standing = watched.look()
    if request.once or standing.over:
        _say(standing, console)
    elif console.is_terminal:
        standing = _follow(watched, standing, request.every, console)
    else:
        standing = _follow_in_lines(watched, standing, request.every, console)
    return _exit_code(standing)


def _exit_code(standing: RunStanding) -> int:
    if not standing.over:
        return UNFINISHED
    return 1 if standing.count("failed") else 0


def _follow(watched: RunWatch, standing: RunStanding, every: float, console: BenchConsole) -> RunStanding:
    """Redraw in place until all has ended or the user stops looking."""
    from contextlib import suppress

    from rich.live import Live

    with suppress(KeyboardInterrupt), Live(_picture(standing), console=console, auto_refresh=False) as live:
        while not standing.over:
            time.sleep(every)
            standing = watched.look()
            live.update(_picture(standing), refresh=True)
    return standing


def _follow_in_lines(
    watched: RunWatch, standing: RunStanding, every: float, console: BenchConsole
) -> RunStanding:
    """A line whenever a cell has begun or ended, for logs."""
    said = ""
    while True:
        now = _counts(standing)
        if now != said:
            console.say(_summary(standing))
            said = now
        if standing.over:
            return standing
        time.sleep(every)
        standing = watched.look()


def _say(standing: RunStanding, console: BenchConsole) -> None:
    console.say(_summary(standing))
    for cell in _worth_showing(standing):
        console.say("  " + "  ".join(filter(None, _words(cell))))


def _picture(standing: RunStanding) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    done, planned = standing.rounds
    grid = Table.grid(padding=(0, 2))
    for cell in _worth_showing(standing):
        style = "red" if cell.state == "failed" else "dim" if cell.state == "quiet" else ""
        grid.add_row(*(Text(word, style=style) for word in _words(cell)))
    return Group(Text(_summary(standing)), ProgressBar(total=max(planned, 1), completed=done, width=60), grid)


def _counts(standing: RunStanding) -> str:
    """`3 done, 2 running, 1 failed, 2 waiting`; kinds without cells are left out, but for the first."""
    running = [f"{number} {state}" for state in ("running", "quiet") if (number := standing.count(state))]
    others = [f"{number} {state}" for state in ("failed", "waiting") if (number := standing.count(state))]
    return ", ".join([f"{standing.count('done')} of {len(standing.cells)} cells done", *running, *others])


def _summary(standing: RunStanding) -> str:
    from bench.cli.live import duration

    done, planned = standing.rounds
    left = standing.seconds_left()
    eta = f"; about {duration(left)} left" if left is not None and not standing.over else ""
    suite = f"{standing.suite.name} v{standing.suite.version}"
    return f"{suite}: {_counts(standing)}; {done} of {planned} rounds{eta}"


def _worth_showing(standing: RunStanding) -> list[CellStanding]:
    """Cells that run, that have failed, or that have stopped on the way."""
    shown = [
        cell for state in ("failed", "running", "quiet") for cell in standing.cells if cell.state == state
    ]
    return shown[:SHOWN]


def _words(cell: CellStanding) -> tuple[str, str, str, str]:
    from bench.cli.live import duration

    average = f"AVG {100 * cell.average:.1f}" if cell.average is not None else ""
    last = cell.failure if cell.state == "failed" else f"last round {duration(cell.since)} ago"
    return cell.name, f"{cell.state}, round {cell.rounds}/{cell.planned}", average, last
