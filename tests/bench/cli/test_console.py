"""What commands print: texts from files never steer the terminal."""

from __future__ import annotations

import io

from rich.table import Table

from bench.cli.console import BenchConsole
from bench.cli.live import ConsoleObserver
from bench.observer import Item

NASTY = "[/red] [link=x] \x1b[2J\x1b]0;title\x07 \u202e \x9b31m"
HARMFUL = ("\x1b[2J", "\x1b]0", "\x07", "\u202e", "\x9b")


def shown(terminal: bool) -> tuple[BenchConsole, io.StringIO]:
    out = io.StringIO()
    return BenchConsole(file=out, force_terminal=terminal, width=120), out


def test_sentences_and_tables_hold_no_control_characters() -> None:
    console, out = shown(terminal=False)
    console.say(f"one {NASTY}\ntwo")
    grid = Table(NASTY)
    grid.add_row("x\ty")
    console.print(grid)
    assert not any(each in out.getvalue() for each in HARMFUL)
    assert out.getvalue().startswith("one [/red] [link=x]") and "\ntwo\n" in out.getvalue()


def test_the_live_view_takes_names_and_reasons_as_text() -> None:
    console, out = shown(terminal=True)
    items = [Item("a", NASTY, 4), Item("b", "[bold]plain", 4)]
    with ConsoleObserver(console).view(NASTY, items, 0) as view:
        view.advanced("b", 2, 0.5)
        view.advanced("a", 1, None)
        view.failed("a", NASTY)
    text = out.getvalue()
    assert not any(each in text for each in HARMFUL)
    assert "[/red] [link=x]" in text and "[bold]plain" in text
