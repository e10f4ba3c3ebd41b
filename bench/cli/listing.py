"""`bench list`: the names of everything there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.cli.inspection_requests import ListRequest
from bench.cli.request_options import command_of
from bench.errors import UserError, nearest


@command_of(ListRequest, positional=("kind",))
def list_(request: ListRequest) -> None:
    """List what there is."""
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
        "runs": lambda: _runs(request.root),
    }
    if request.kind not in listings:
        raise UserError(f"cannot list '{request.kind}'; {nearest(request.kind, listings)}")
    rows = listings[request.kind]()
    console = make_console()
    if not rows:
        console.say(f"no {request.kind} in {request.root}")
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
