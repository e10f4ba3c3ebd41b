"""Which cells go to one process: those of a stack at once, and stack after stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import TypeVar

from bench.engine.cell_stack import Cells
from bench.suite.planning import PlannedCell

Item = TypeVar("Item")

SHARES = 4
"""A process takes this fraction of its share of what is left."""


def stacks(cells: Sequence[PlannedCell], most: int, processes: int) -> list[list[PlannedCell]]:
    """Cells that differ in hyperparameters alone, at most so many together.

    There are no fewer stacks of one kind than processes, so that none of these stands idle.
    """
    kinds: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        kinds.setdefault(cell.config.stack, []).append(cell)
    found = []
    for alike in kinds.values():
        size = min(most, -(-len(alike) // processes))
        found += [alike[first : first + size] for first in range(0, len(alike), size)]
    return found


def bundles(items: Sequence[Item], processes: int) -> list[list[Item]]:
    """What a process takes at a time: less and less, so that all processes end at about the same time.

    Every handover costs the driver and a process time, which is much for cells that take less than a second.
    """
    found = []
    first = 0
    while first < len(items):
        size = max(1, (len(items) - first) // (SHARES * processes))
        found.append(list(items[first : first + size]))
        first += size
    return found


def divided(cells: Cells, most: int) -> list[Cells]:
    """The stacks among cells that were handed over together."""
    found: list[Cells] = []
    for _, alike in groupby(cells, key=lambda cell: cell[1].stack):
        found += _chunks(alike, most)
    return found


def _chunks(items: Iterable[Item], size: int) -> list[list[Item]]:
    """As many at a time, until there are none left."""
    rest = iter(items)
    return list(iter(lambda: list(islice(rest, size)), []))
