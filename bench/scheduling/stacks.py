"""Which cells go to one process, to be trained together."""

from __future__ import annotations

from collections.abc import Sequence

from bench.suite.planning import PlannedCell


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
