"""Output to the user: sentences are never wrapped or coloured, tables get room where there is no screen."""

import os
import sys

from rich.console import Console

WIDTH_WITHOUT_SCREEN = 140


class BenchConsole(Console):
    def say(self, text: str) -> None:
        """A sentence as it is, on a line of its own."""
        self.print(text, markup=False, highlight=False, soft_wrap=True)


def make_console() -> BenchConsole:
    has_screen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return BenchConsole(width=None if has_screen else WIDTH_WITHOUT_SCREEN)
