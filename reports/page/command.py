"""The command that computes a cell again."""

import shlex
from typing import Any

import yaml

from bench.config import suite_names
from reports.records import CellRecord, Run

OUT = "rerun"
"""Another folder than the run's own, where the cell is done already."""


def rerun_command(run: Run, cell: CellRecord) -> str:
    """Runs the cell's method up to its seed with what was changed of the suite; the cell is among them."""
    name = run.suite.name
    words = ["bench", "run", "--suite", name if name in suite_names() else f"{name}.yaml"]
    words += ["--methods", cell.method, "--seeds", str(cell.seed + 1)]
    for key, value in run.settings.items():
        words += ["--set", f"{key}={_as_yaml(value)}"]
    return shlex.join([*words, "--out", OUT])


def _as_yaml(value: Any) -> str:
    """On one line, as `--set` reads it: JSON would write 1e-05, which YAML takes for text."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()
