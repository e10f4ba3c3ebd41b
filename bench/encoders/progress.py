"""How far an extraction is: a bar on a terminal, a line now and then in a plain log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Report: TypeAlias = Callable[[int, int], None]
"""Takes the number of samples that are done and of all."""

SECONDS_PER_LINE = 15.0


@contextmanager
def reporting(progress: Report | None, title: str) -> Iterator[Report]:
    """The caller's report, or else a bar on a terminal or lines in a log."""
    if progress is not None:
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines_in_a_log(title)
        return
    columns = (TextColumn("embeddings of {task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def lines_in_a_log(title: str, clock: Callable[[], float] = time.monotonic) -> Report:
    """A report that prints a line every 15 seconds, and one at the end of work that took longer."""
    started = last = clock()
    first: int | None = None

    def report(done: int, total: int) -> None:
        nonlocal last, first
        first = done if first is None else first
        now = clock()
        waited = now - last >= SECONDS_PER_LINE
        if not waited and not (done == total and last > started):
            return
        last = now
        rate = (done - first) / max(now - started, 1e-9)
        left = f", {(total - done) / rate:.0f} s left" if rate and done < total else ""
        print(
            f"embeddings of {title}: {done} of {total}, {rate:.1f} per second{left}",
            file=sys.stderr,
            flush=True,
        )

    return report
