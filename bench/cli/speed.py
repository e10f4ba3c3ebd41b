"""`bench speed`: updates per CPU second of each executor and of a plain PyTorch loop."""

from __future__ import annotations

from statistics import median

from bench.cli.inspection_requests import SpeedRequest
from bench.cli.request_options import command_of


@command_of(SpeedRequest)
def speed(request: SpeedRequest) -> None:
    """Client updates (or pictures encoded) per CPU second, against a plain PyTorch loop side by side."""
    from rich.table import Table

    from bench.cli.console import make_console
    from bench.speed.compare import EXTRACTION, check_work, measured

    console = make_console()
    for name in request.work:
        check_work(name)
    for name in request.work:
        unit = "pictures" if name == EXTRACTION else "updates"
        for title, rates in measured(name, request.repeats):
            first, plain = next(iter(rates.items()))
            heading = f"{title}: median of {request.repeats} in turn"
            grid = Table("side", f"{unit} per CPU s", f"× {first}", title=heading)
            for side, values in rates.items():
                ratio = median(value / base for value, base in zip(values, plain, strict=True))
                grid.add_row(side, f"{median(values):.1f}", f"{ratio:.2f}")
            console.print(grid)
