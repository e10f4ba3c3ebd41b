"""The commands that compute cells again."""

import shlex
from collections import Counter
from typing import Any

import yaml

from bench.records.reader import CellRecord, Run
from bench.records.schema import DEFAULT_ROW, SHARED_ROW
from bench.suite.loading import as_option

OUT = "rerun"
"""Not the folder of the run, in which the cell is already done."""


def rerun_commands(run: Run) -> list[str]:
    """One command per cell of a run, in order."""
    suite = as_option(run.suite.name)
    rows = dict.fromkeys((cell.method, _row(cell)) for cell in run.cells)
    several = {method for method, count in Counter(method for method, _ in rows).items() if count > 1}
    names = {name for row in rows for name in row}
    commands = []
    for cell in run.cells:
        name = _row(cell) if cell.method in several else cell.method
        commands.append(_command(suite, cell, name, names - {cell.method, _row(cell)}))
    return commands


def _row(cell: CellRecord) -> str:
    """The row of the suite: without what a sweep, defaults or shared values beside tuned ones add to it."""
    label = cell.swept.row if cell.swept else cell.label
    return label.removesuffix(DEFAULT_ROW).removesuffix(SHARED_ROW)


def _command(suite: str, cell: CellRecord, name: str, others: set[str]) -> str:
    """A command that runs the cell's row for all seeds up to its own, with the user's overrides."""
    words = ["bench", "run", "--suite", suite, "--methods", name, "--seeds", str(cell.seed + 1)]
    settings = {f"{name}.{key}": value for key, value in cell.tuned_values.items()}
    settings |= dict(cell.settings)  # as `bench run --tuned` applies them
    settings |= cell.swept.values if cell.swept else {}
    for key, value in settings.items():
        if not any(key.startswith(f"{other}.") for other in others):
            words += ["--set", f"{key}={_as_yaml(value)}"]
    return shlex.join([*words, "--out", OUT])


def _as_yaml(value: Any) -> str:
    """The value as `--set` reads it, on one line; not JSON, whose 1e-05 is text in YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()
