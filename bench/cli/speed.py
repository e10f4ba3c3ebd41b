"""`bench speed`: updates per CPU second of each executor and of a plain PyTorch loop."""

from __future__ import annotations

from statistics import median
from typing import Annotated

import typer


def speed(
    work: Annotated[str, typer.Option(help="digits, synth, cnn, heads or vit.")] = "digits",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements per side, taken in turn.")] = 7,
) -> None:
    """Updates per CPU second of each executor against a plain PyTorch loop, side by side."""
    from rich.table import Table

    from bench.cli.console import make_console
    from bench.speed.compare import measured

    console = make_console()
    for title, rates in measured(work, repeats):
        grid = Table(
            "executor", "updates per CPU s", "× plain loop", title=f"{title}: median of {repeats} in turn"
        )
        plain = rates["plain loop"]
        for side, values in rates.items():
            ratio = median(value / base for value, base in zip(values, plain, strict=True))
            grid.add_row(side, f"{median(values):.1f}", f"{ratio:.2f}")
        console.print(grid)
