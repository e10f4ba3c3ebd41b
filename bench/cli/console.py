"""Output to the user: sentences are never wrapped or coloured, tables get room where there is no screen."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bench.observer import Item, View, Words
from bench.text import one_line

WIDTH_WITHOUT_SCREEN = 140


class BenchConsole(Console):
    """A console that shows text from records and files without letting it steer the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def say(self, text: str) -> None:
        """A sentence as it is, on a line of its own."""
        self.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def view(
        self, title: str, items: Sequence[Item], done: int, words: Words | None = None
    ) -> Iterator[View]:
        """A live view in a terminal, plain lines elsewhere; with `say`, what an `Observer` needs."""
        from bench.cli.live import LineView, LiveView

        if not self.is_terminal:
            yield LineView(self, title, items, done, words or Words())
            return
        view = LiveView(self, title, items, done, words or Words())
        with view.shown:
            yield view

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is printed comes through here; only the console's own control codes pass."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable() or segment.text == "\n":
                yield segment
            else:
                lines = "\n".join(map(one_line, segment.text.split("\n")))
                yield Segment(lines, segment.style)


def make_console() -> BenchConsole:
    has_screen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return BenchConsole(width=None if has_screen else WIDTH_WITHOUT_SCREEN)
