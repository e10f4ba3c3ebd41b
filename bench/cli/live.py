"""What the user sees while cells run: one live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bench.cli.console import BenchConsole
from bench.observer import Item, Words

SHOWN = 12
"""Running cells in the live view."""


class ConsoleObserver:
    """Tells the user of a run or a search: a live view in a terminal, plain lines elsewhere."""

    def __init__(self, console: BenchConsole) -> None:
        self.console = console

    def say(self, text: str) -> None:
        self.console.say(text)

    def view(
        self, title: str, items: Sequence[Item], done: int, words: Words | None = None
    ) -> LiveView | LineView:
        kind = LiveView if self.console.is_terminal else LineView
        return kind(self.console, title, items, done, words or Words())


class _Board:
    """What is known of the cells of a run."""

    def __init__(self, items: Sequence[Item], done: int) -> None:
        self.names: dict[str, str] = {}
        self.rounds: dict[str, int] = {}
        for item in items:
            self.expect(item)
        self.at: dict[str, tuple[int, float | None]] = {}
        self.ended: set[str] = set()
        self.failures: dict[str, str] = {}
        self.done_before = done
        self.started = time.monotonic()

    def expect(self, item: Item) -> None:
        self.names[item.key] = item.name
        self.rounds[item.key] = item.rounds

    @property
    def total(self) -> int:
        return self.done_before + len(self.names)

    @property
    def complete(self) -> int:
        return self.done_before + len(self.ended) - len(self.failures)

    def remaining_seconds(self) -> float | None:
        """From the rounds done so far in this run; None before there are any."""
        all_rounds = sum(self.rounds.values())
        done = sum(
            self.rounds[key] if key in self.ended else self.at.get(key, (0, None))[0] for key in self.rounds
        )
        if not done:
            return None
        return (time.monotonic() - self.started) / done * (all_rounds - done)


class LineView:
    """One line per cell that ends, with the time left."""

    def __init__(
        self, console: BenchConsole, title: str, items: Sequence[Item], done: int, words: Words
    ) -> None:
        self._console = console
        self._words = words
        self._board = _Board(items, done)
        console.say(f"{title}: {len(items)} {words.items} to run, {done} already done")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def expect(self, item: Item) -> None:
        self._board.expect(item)

    def advanced(self, key: str, rounds: int, score: float | None) -> None:
        self._board.at[key] = (rounds, score)

    def finished(self, key: str, note: str = "") -> None:
        self._board.ended.add(key)
        average = self._board.at.get(key, (0, None))[1]
        score = f" {self._words.score} {100 * average:.1f}" if average is not None else ""
        self._say(f"done {self._board.names[key]}{score}" + (f" {note}" if note else ""))

    def failed(self, key: str, reason: str) -> None:
        self._board.ended.add(key)
        self._board.failures[key] = reason
        self._say(f"FAILED {self._board.names[key]}: {reason}")

    def _say(self, text: str) -> None:
        left = self._board.remaining_seconds()
        eta = f", about {duration(left)} left" if left else ""
        ended = self._board.done_before + len(self._board.ended)
        self._console.say(f"[{ended}/{self._board.total}{eta}] {text}")


class LiveView:
    """Suite progress, the cells running now, and failures, redrawn in place."""

    def __init__(
        self, console: BenchConsole, title: str, items: Sequence[Item], done: int, words: Words
    ) -> None:
        self._words = words
        self._board = _Board(items, done)
        self._bar = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[eta]}"),
        )
        self._task = self._bar.add_task(title, total=self._board.total, completed=done, eta="")
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def expect(self, item: Item) -> None:
        self._board.expect(item)
        self._bar.update(self._task, total=self._board.total)

    def advanced(self, key: str, rounds: int, score: float | None) -> None:
        self._board.at[key] = (rounds, score)
        left = self._board.remaining_seconds()
        self._bar.update(self._task, eta=f"about {duration(left)} left" if left else "")

    def finished(self, key: str, note: str = "") -> None:
        self._board.ended.add(key)
        self._bar.update(self._task, completed=self._board.complete)

    def failed(self, key: str, reason: str) -> None:
        self._board.ended.add(key)
        self._board.failures[key] = reason

    def _draw(self) -> RenderableType:
        running = Table.grid(padding=(0, 2))
        shown = [key for key in self._board.at if key not in self._board.ended][:SHOWN]
        for key in shown:
            rounds, average = self._board.at[key]
            score = f"{self._words.score} {100 * average:.1f}" if average is not None else ""
            at = f"round {rounds}/{self._board.rounds[key]}"
            running.add_row(*map(Text, (f"  {self._board.names[key]}", at, score)))
        for key, reason in self._board.failures.items():
            cells = (f"  {self._board.names[key]}", "failed", reason[:80])
            running.add_row(*(Text(cell, style="red") for cell in cells))
        return Group(self._bar, running)


def duration(seconds: float) -> str:
    """`1 h 05 min`, `3 min 20 s` or `12 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
