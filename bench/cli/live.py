"""What the user sees while cells run: one live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.cli.console import BenchConsole
from bench.suite.planning import PlannedCell

SHOWN = 12
"""Running cells in the live view."""


@dataclass(frozen=True)
class Item:
    """A cell of a run, or a trial of a search."""

    key: str
    name: str
    rounds: int


@dataclass(frozen=True)
class Words:
    """How a view speaks of its items and their scores."""

    items: str = "cells"
    score: str = "AVG"


def items_of(cells: Sequence[PlannedCell]) -> list[Item]:
    return [Item(cell.cell, _name(cell), cell.config["training"]["rounds"]) for cell in cells]


class View(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def expect(self, item: Item) -> None:
        """One more than was known at the start; known already: nothing happens."""

    def advanced(self, cell: str, rounds: int, average: float | None) -> None: ...

    def finished(self, cell: str, note: str = "") -> None: ...

    def failed(self, cell: str, reason: str) -> None: ...


def make_view(
    console: BenchConsole, title: str, items: Sequence[Item], done: int, words: Words | None = None
) -> View:
    kind = LiveView if console.is_terminal else LineView
    return kind(console, title, items, done, words or Words())


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
            self.rounds[cell] if cell in self.ended else self.at.get(cell, (0, None))[0]
            for cell in self.rounds
        )
        if not done:
            return None
        return (time.monotonic() - self.started) / done * (all_rounds - done)


class LineView:
    """A line a cell, with what is left."""

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

    def advanced(self, cell: str, rounds: int, average: float | None) -> None:
        self._board.at[cell] = (rounds, average)

    def finished(self, cell: str, note: str = "") -> None:
        self._board.ended.add(cell)
        average = self._board.at.get(cell, (0, None))[1]
        score = f" {self._words.score} {100 * average:.1f}" if average is not None else ""
        self._say(f"done {self._board.names[cell]}{score}" + (f" {note}" if note else ""))

    def failed(self, cell: str, reason: str) -> None:
        self._board.ended.add(cell)
        self._board.failures[cell] = reason
        self._say(f"FAILED {self._board.names[cell]}: {reason}")

    def _say(self, text: str) -> None:
        left = self._board.remaining_seconds()
        eta = f", about {_duration(left)} left" if left else ""
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
            TextColumn("[bold]{task.description}"),
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

    def advanced(self, cell: str, rounds: int, average: float | None) -> None:
        self._board.at[cell] = (rounds, average)
        left = self._board.remaining_seconds()
        self._bar.update(self._task, eta=f"about {_duration(left)} left" if left else "")

    def finished(self, cell: str, note: str = "") -> None:
        self._board.ended.add(cell)
        self._bar.update(self._task, completed=self._board.complete)

    def failed(self, cell: str, reason: str) -> None:
        self._board.ended.add(cell)
        self._board.failures[cell] = reason

    def _draw(self) -> RenderableType:
        running = Table.grid(padding=(0, 2))
        shown = [cell for cell in self._board.at if cell not in self._board.ended][:SHOWN]
        for cell in shown:
            rounds, average = self._board.at[cell]
            score = f"{self._words.score} {100 * average:.1f}" if average is not None else ""
            running.add_row(
                f"  {self._board.names[cell]}", f"round {rounds}/{self._board.rounds[cell]}", score
            )
        for cell, reason in self._board.failures.items():
            running.add_row(f"[red]  {self._board.names[cell]}", "[red]failed", f"[red]{reason[:80]}")
        return Group(self._bar, running)


def _name(cell: PlannedCell) -> str:
    variant = f" {cell.variant}" if cell.variant else ""
    return f"{cell.label}{variant} seed {cell.seed}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
