"""Sweeps as one long table: a line per cell, a column per swept key."""

from collections.abc import Sequence
from typing import Any

from bench.records.reader import CellRecord, Run
from reports.numbers.designs import place_of
from reports.numbers.history import state_of
from reports.numbers.scores import domains_of

IDENTITY = ("suite", "dataset", "setting", "row", "method", "seed", "cell_id", "state")

Line = dict[str, Any]
"""Column → value; columns that do not concern the cell are left out."""


def long_table(runs: Sequence[Run]) -> tuple[list[str], list[Line]]:
    """Columns and lines of all cells, also of those that do not depend on a swept key or are not done."""
    keys = dict.fromkeys(key for run in runs for cell in run.cells for key in _values(cell))
    domains = dict.fromkeys(domain for run in runs for domain in run.domains)
    lines = []
    for run in runs:
        in_variant = {variant: domains_of(run, variant) for variant in run.variants}
        lines += [_line(run, cell, in_variant[cell.variant]) for cell in run.cells]
    personal = ["personal"] if any("personal" in line for line in lines) else []
    return [*IDENTITY, *keys, "avg", *domains, *personal], lines


def _line(run: Run, cell: CellRecord, domains: tuple[str, ...]) -> Line:
    place = place_of(run, cell)
    row = cell.swept.row if cell.swept else cell.label
    identity = (place.suite, place.dataset, place.setting, row, cell.method, cell.seed, cell.cell_id)
    shares = {"avg": cell.average(domains), **{domain: cell.accuracy(domain) for domain in domains}}
    if cell.personal is not None:
        shares["personal"] = cell.personal
    return {
        **dict(zip(IDENTITY, (*identity, state_of(cell)), strict=True)),
        **_values(cell),
        **{name: 100 * share for name, share in shares.items() if share is not None},
    }


def _values(cell: CellRecord) -> dict[str, Any]:
    return cell.swept.values if cell.swept else {}
