"""What the user sees while cells run: one live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bench.cli.console import BenchConsole
from bench.observer import Item, Words

SHOWN = 12
"""Running cells in the live view."""


class _View:
    """What is known of the cells of a run."""

    def __init__(self, items: Sequence[Item], done: int, words: Words) -> None:
        self._names: dict[str, str] = {}
        self._rounds: dict[str, int] = {}
        for item in items:
            self._names[item.key], self._rounds[item.key] = item.name, item.rounds
        self._at: dict[str, tuple[int, float | None]] = {}
        self._ended: set[str] = set()
        self._failures: dict[str, str] = {}
        self._done_before = done
        self._words = words
        self._started = time.monotonic()

    def expect(self, item: Item) -> None:
        self._names[item.key], self._rounds[item.key] = item.name, item.rounds

    def advanced(self, key: str, rounds: int, score: float | None) -> None:
        self._at[key] = (rounds, score)

    def finished(self, key: str, note: str = "") -> None:
        self._ended.add(key)

    def failed(self, key: str, reason: str) -> None:
        self._ended.add(key)
        self._failures[key] = reason

    @property
    def _total(self) -> int:
        return self._done_before + len(self._names)

    def _score(self, key: str) -> str:
        average = self._at.get(key, (0, None))[1]
        return "" if average is None else f"{self._words.score} {100 * average:.1f}"

    def _time_left(self) -> str:
        """From the rounds done so far in this run; empty before there are any, and at the end."""
        done = sum(
            rounds if key in self._ended else self._at.get(key, (0, None))[0]
            for key, rounds in self._rounds.items()
        )
        left = sum(self._rounds.values()) - done
        return (
            f"about {duration((time.monotonic() - self._started) / done * left)} left"
            if done and left
            else ""
        )


class LineView(_View):
    """One line per cell that ends, with the time left."""

    def __init__(
        self, console: BenchConsole, title: str, items: Sequence[Item], done: int, words: Words
    ) -> None:
        super().__init__(items, done, words)
        self._console = console
        console.say(f"{title}: {len(items)} {words.items} to run, {done} already done")

    def finished(self, key: str, note: str = "") -> None:
        super().finished(key)
        self._say(" ".join(filter(None, ("done", self._names[key], self._score(key), note))))

    def failed(self, key: str, reason: str) -> None:
        super().failed(key, reason)
        self._say(f"FAILED {self._names[key]}: {reason}")

    def _say(self, text: str) -> None:
        ended = f"{self._done_before + len(self._ended)}/{self._total}"
        self._console.say(f"[{', '.join(filter(None, (ended, self._time_left())))}] {text}")


class LiveView(_View):
    """Suite progress, the cells running now, and failures, redrawn in place while `shown` is open."""

    def __init__(
        self, console: BenchConsole, title: str, items: Sequence[Item], done: int, words: Words
    ) -> None:
        super().__init__(items, done, words)
        self._bar = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[eta]}"),
        )
        self._task = self._bar.add_task(title, total=self._total, completed=done, eta="")
        self.shown = Live(get_renderable=self._draw, console=console, refresh_per_second=4)

    def expect(self, item: Item) -> None:
        super().expect(item)
        self._bar.update(self._task, total=self._total)

    def advanced(self, key: str, rounds: int, score: float | None) -> None:
        super().advanced(key, rounds, score)
        self._bar.update(self._task, eta=self._time_left())

    def finished(self, key: str, note: str = "") -> None:
        super().finished(key)
        complete = self._done_before + len(self._ended) - len(self._failures)
        self._bar.update(self._task, completed=complete)

    def _draw(self) -> RenderableType:
        running = Table.grid(padding=(0, 2))
        for key in [key for key in self._at if key not in self._ended][:SHOWN]:
            at = f"round {self._at[key][0]}/{self._rounds[key]}"
            running.add_row(*map(Text, (f"  {self._names[key]}", at, self._score(key))))
        for key, reason in self._failures.items():
            cells = (f"  {self._names[key]}", "failed", reason[:80])
            running.add_row(*(Text(cell, style="red") for cell in cells))
        return Group(self._bar, running)


def duration(seconds: float) -> str:
    """`1 h 05 min`, `3 min 20 s` or `12 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
