"""`bench compare`: what changed between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.cli.request_options import command_of
from bench.results.request import CompareRequest

if TYPE_CHECKING:
    from rich.table import Table

    from reports.combine.compare import CellChange

Pairs = Mapping[str, tuple[str, str]]


@command_of(CompareRequest, positional=("first", "second"))
def compare(request: CompareRequest) -> None:
    """Show what changed between two runs, cell by cell."""
    from bench.cli.console import make_console
    from bench.results.compare import compare as compare_runs

    console = make_console()
    found = compare_runs(request, console)
    console.say(f"A: {found.sources[0]}\nB: {found.sources[1]}")
    for line in _lines("plan", found.plan):
        console.say(line)
    shared = {
        **_shared([change.settings for change in found.changes if change.settings is not None]),
        **_shared([change.provenance for change in found.changes if change.provenance is not None]),
    }
    for line in _lines("all cells", shared):
        console.say(line)
    rows = [(change, _details(change, shared)) for change in found.changes]
    changed = [(change, details) for change, details in rows if details or change.domains]
    if changed:
        console.print(_table(changed))
    if alike := sum(not change.domains and not any(change.states) for change in found.changes):
        console.say(f"{alike} of the {len(rows)} cells in both runs have the same accuracies.")
    for name, cells in (("A", found.only_first), ("B", found.only_second)):
        if cells:
            console.say(f"only in {name}: {'; '.join(cells)}")


def _shared(details: Sequence[Pairs]) -> Pairs:
    """Differences that all cells have alike, such as another commit; of a single cell none are."""
    if len(details) < 2:
        return {}
    first, *others = details
    return {key: pair for key, pair in first.items() if all(other.get(key) == pair for other in others)}


def _details(change: CellChange, shared: Pairs) -> list[str]:
    """What is particular to a cell."""
    states = [f"{state} in {name}" for name, state in zip("AB", change.states, strict=True) if state]
    pairs = {**(change.settings or {}), **(change.provenance or {})}
    own = {key: pair for key, pair in pairs.items() if key not in shared}
    return states + [f"{key}: {ours} → {theirs}" for key, (ours, theirs) in own.items()]


def _table(changed: Sequence[tuple[CellChange, list[str]]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from reports.tables.table import MISSING, number, signed_number

    grid = Table(box=box.HORIZONTALS, padding=(0, 0, 0, 1), pad_edge=False)
    grid.add_column("Cell", no_wrap=True)
    for heading in ("AVG A", "AVG B", "B − A"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("Domains, B − A")
    grid.add_column("What differs")
    for change, details in changed:
        first, second = (MISSING if value is None else number(value) for value in change.averages)
        difference = MISSING if change.difference is None else signed_number(change.difference)
        domains = ", ".join(
            f"{name} {signed_number(theirs - ours)}"
            for name, (ours, theirs) in change.domains.items()
            if ours is not None and theirs is not None
        )
        grid.add_row(*map(Text, (change.name, first, second, difference, domains, "; ".join(details))))
    return grid


def _lines(where: str, pairs: Pairs) -> list[str]:
    return [f"{where}: {key}: {ours} → {theirs}" for key, (ours, theirs) in pairs.items()]
