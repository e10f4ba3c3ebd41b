"""The commands that compute cells again."""

import shlex
from typing import Any

import yaml

from bench.records.reader import CellRecord, Run
from bench.suite.loading import as_option

OUT = "rerun"
"""Not the folder of the run, in which the cell is already done."""


def rerun_commands(run: Run) -> list[str]:
    """One command per cell of a run, in order."""
    suite = as_option(run.suite.name)
    methods = {cell.method for cell in run.cells}
    return [_command(suite, cell, methods - {cell.method}) for cell in run.cells]


def _command(suite: str, cell: CellRecord, others: set[str]) -> str:
    """A command that runs the cell's method for all seeds up to its own, with the user's overrides."""
    words = ["bench", "run", "--suite", suite, "--methods", cell.method, "--seeds", str(cell.seed + 1)]
    for key, value in (_tuned(cell) | dict(cell.settings)).items():  # as `bench run --tuned` applies them
        if key.partition(".")[0] not in others:
            words += ["--set", f"{key}={_as_yaml(value)}"]
    return shlex.join([*words, "--out", OUT])


def _tuned(cell: CellRecord) -> dict[str, Any]:
    """What a search chose for the cell's method: dotted key → value."""
    return {f"{cell.method}.{key}": value for key, value in cell.tuned_values.items()}


def _as_yaml(value: Any) -> str:
    """The value as `--set` reads it, on one line; not JSON, whose 1e-05 is text in YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()
