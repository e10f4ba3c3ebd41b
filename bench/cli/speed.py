"""`bench speed`: updates per CPU second of each executor and of a plain PyTorch loop."""

from __future__ import annotations

from statistics import median
from typing import Annotated

import typer


def speed(
    work: Annotated[
        str, typer.Option(help="digits, synth, cnn, heads, vit, sweep or extraction; several as a,b,c.")
    ] = "digits",
    repeats: Annotated[int, typer.Option(min=1, help="Measurements per side, taken in turn.")] = 7,
) -> None:
    """Client updates (or pictures encoded) per CPU second, against a plain PyTorch loop side by side."""
    from rich.table import Table

    from bench.cli.console import make_console
    from bench.cli.request_options import names
    from bench.speed.compare import EXTRACTION, check_work, measured

    console = make_console()
    works = names(work)
    for name in works:
        check_work(name)
    for name in works:
        unit = "pictures" if name == EXTRACTION else "updates"
        for title, rates in measured(name, repeats):
            first, plain = next(iter(rates.items()))
            heading = f"{title}: median of {repeats} in turn"
            grid = Table("side", f"{unit} per CPU s", f"× {first}", title=heading)
            for side, values in rates.items():
                ratio = median(value / base for value, base in zip(values, plain, strict=True))
                grid.add_row(side, f"{median(values):.1f}", f"{ratio:.2f}")
            console.print(grid)
