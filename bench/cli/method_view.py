"""The hyperparameters of a method as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from reports.site import MethodInfo


def hyperparameter_table(info: MethodInfo) -> Table:
    """One row per hyperparameter: default, allowed values, the paper's, the search range and the meaning."""
    from rich.box import SIMPLE
    from rich.table import Table

    grid = Table(box=SIMPLE, pad_edge=False, show_lines=False)
    grid.add_column("hyperparameter", no_wrap=True, style="bold")
    grid.add_column("default", no_wrap=True)
    grid.add_column("allowed")
    grid.add_column("paper")
    grid.add_column("search range")
    grid.add_column("meaning", ratio=1)
    for each in info.hyperparameters:
        grid.add_row(
            each.name, each.default, each.allowed, each.paper, each.searched or "not searched", each.meaning
        )
    return grid
