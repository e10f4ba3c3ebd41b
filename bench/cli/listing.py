"""`bench list`: the names of everything there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bench.cli import options
from bench.errors import UserError, nearest


def list_(
    kind: Annotated[str, typer.Argument(help="suites, methods, datasets, models, encoders or runs.")],
    root: options.Runs = Path("runs"),
) -> None:
    """List what there is."""
    list_kind(kind, root)


def list_kind(kind: str, root: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from bench.cli.console import make_console
    from bench.data import dataset_summaries
    from bench.encoders import encoder_summaries
    from bench.models import MODELS
    from bench.suite.loading import load_suite, suite_names
    from bench.suite.methods import AROUND, METHODS, WRAPPERS

    listings: dict[str, Callable[[], dict[str, str]]] = {
        "suites": lambda: {name: load_suite(name).title for name in suite_names()},
        "methods": lambda: {
            **METHODS.summaries(),
            **{f"{name}{AROUND}METHOD": summary for name, summary in WRAPPERS.summaries().items()},
        },
        "datasets": dataset_summaries,
        "models": MODELS.summaries,
        "encoders": encoder_summaries,
        "runs": lambda: _runs(root),
    }
    if kind not in listings:
        raise UserError(f"cannot list '{kind}'; {nearest(kind, listings)}")
    rows = listings[kind]()
    console = make_console()
    if not rows:
        console.say(f"no {kind} in {root}")
        return
    grid = Table.grid(padding=(0, 3))
    for name, summary in rows.items():
        grid.add_row(Text(name, style="bold"), Text(summary))
    console.print(grid)


def _runs(root: Path) -> dict[str, str]:
    return {str(file.parent): _state_of_run(file) for file in sorted(root.glob("*/plan.json"))}


def _state_of_run(plan_file: Path) -> str:
    from bench.records.files import read_json

    try:
        plan = read_json(plan_file)
        done = sum((plan_file.parent / cell["dir"] / "result.json").exists() for cell in plan["cells"])
        return f"{plan['suite']['title']}: {done} of {len(plan['cells'])} cells done"
    except (OSError, UserError, KeyError, TypeError):
        return f"damaged: {plan_file.name} cannot be read; run the suite again to write it again"
