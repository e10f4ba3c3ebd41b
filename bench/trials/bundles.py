"""Which cells go to one process: those of a stack at once, and stack after stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

from bench.suite.planning import PlannedCell

Item = TypeVar("Item")

SHARES = 4
"""A process takes this fraction of its share of what is left."""


def stacks(cells: Sequence[PlannedCell], most: int, processes: int) -> list[list[PlannedCell]]:
    """Cells that differ in hyperparameters and seed alone, at most so many together.

    Cells of one seed share their samples, so that they stay together; other seeds join them whole. There are
    no fewer stacks of one kind than processes, so that none of these stands idle.
    """
    kinds: dict[str, dict[int, list[PlannedCell]]] = {}
    for cell in cells:
        kinds.setdefault(cell.config.stack, {}).setdefault(cell.seed, []).append(cell)
    found = []
    for seeds in kinds.values():
        room = min(most, -(-sum(map(len, seeds.values())) // processes))
        largest = max(map(len, seeds.values()))
        if largest > room:
            found += [part for alike in seeds.values() for part in _chunks(alike, room)]
        else:
            joined = _chunks(seeds.values(), room // largest)
            found += [[cell for alike in part for cell in alike] for part in joined]
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


def _chunks(items: Iterable[Item], size: int) -> list[list[Item]]:
    """As many at a time, until there are none left."""
    rest = iter(items)
    return list(iter(lambda: list(islice(rest, size)), []))
