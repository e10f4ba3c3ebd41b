"""`bench speed`: updates per CPU second of each executor and of a plain PyTorch loop."""

from __future__ import annotations

from statistics import median
from typing import Annotated

import typer


def speed(
    work: Annotated[
        str, typer.Option(help="digits, synth, cnn, heads, vit, sweep or extraction.")
    ] = "digits",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements per side, taken in turn.")] = 7,
) -> None:
    """Client updates (or pictures encoded) per CPU second, against a plain PyTorch loop side by side."""
    from rich.table import Table

    from bench.cli.console import make_console
    from bench.speed.compare import EXTRACTION, measured

    console = make_console()
    unit = "pictures" if work == EXTRACTION else "updates"
    for title, rates in measured(work, repeats):
        first, plain = next(iter(rates.items()))
        grid = Table("side", f"{unit} per CPU s", f"× {first}", title=f"{title}: median of {repeats} in turn")
        for side, values in rates.items():
            ratio = median(value / base for value, base in zip(values, plain, strict=True))
            grid.add_row(side, f"{median(values):.1f}", f"{ratio:.2f}")
        console.print(grid)
