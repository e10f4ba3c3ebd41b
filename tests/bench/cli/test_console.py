"""What commands print: texts from files never steer the terminal."""

from __future__ import annotations

import io

from rich.table import Table

from bench.cli.console import BenchConsole
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
    with console.view(NASTY, items, 0) as view:
        view.advanced("b", 2, 0.5)
        view.advanced("a", 1, None)
        view.failed("a", NASTY)
    text = out.getvalue()
    assert not any(each in text for each in HARMFUL)
    assert "[/red] [link=x]" in text and "[bold]plain" in text


def test_without_a_terminal_every_ended_item_has_a_line() -> None:
    console, out = shown(terminal=False)
    with console.view("quickstart", [Item("a", "fedavg, seed 0", 4), Item("b", "fedprox", 4)], 1) as view:
        view.advanced("a", 4, 0.5)
        view.finished("a", "(early)")
        view.failed("b", "out of memory")
    assert out.getvalue().splitlines() == [
        "quickstart: 2 cells to run, 1 already done",
        "[2/3, about 0 s left] done fedavg, seed 0 AVG 50.0 (early)",
        "[3/3] FAILED fedprox: out of memory",
    ]
