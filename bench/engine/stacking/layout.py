"""Which cells one vmapped call computes: a pure function of what they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

WORTH_SHARING = 2
"""Cells per set of samples, on average, from which on sharing batches gains more than one call for all."""
WORTH_PADDING = 1.5
"""How many times as many steps as another cell's largest client that of a cell stacked with it may take."""


class Member(NamedTuple):
    """What decides with which other cells a cell is computed."""

    kind: Any
    """Equal for cells that one call can compute: they differ only in numbers, samples and seed."""
    numbers: Mapping[tuple[str, ...], float]
    """The hyperparameters that may be tensors."""
    samples: Hashable
    """Equal for cells whose clients train on the same samples."""
    steps: int | None = 0
    """Those of its largest client in a round; None: it is not stacked with cells that have other samples."""
    copied: int = 0
    """Bytes of its samples, if a call that has other samples too needs a copy of them."""


def layout(cells: Sequence[Member], room: float = float("inf")) -> list[list[list[int]]]:
    """The calls to make: each has sets of cells with the same samples, a cell being its place in `cells`.

    With one set, its cells share batches. With several sets of several cells, there are cells with the same
    numbers, in the same order, in every set. Where every set has one cell, each has its own rows and numbers.
    No call has copies of samples of more than `room` bytes.
    """
    groups: list[list[int]] = []
    for place, cell in enumerate(cells):
        group = next((each for each in groups if _fits(cell, [cells[at] for at in each])), None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    return [call for group in groups for call in _calls(cells, group, room)]


def grouped(items: Sequence[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    """Items with equal keys together, in the order of the first of each; keys need no hash."""
    found: list[tuple[Any, list[Any]]] = []
    for item in items:
        own = key(item)
        group = next((group for other, group in found if other == own), None)
        if group is None:
            found.append((own, [item]))
        else:
            group.append(item)
    return [group for _, group in found]


def _fits(cell: Member, others: Sequence[Member]) -> bool:
    if cell.kind != others[0].kind:
        return False
    if any(cell.samples == other.samples for other in others):
        return True
    return all(_are_of_like_size(cell, other) for other in others)


def _are_of_like_size(one: Member, other: Member) -> bool:
    """Whether the two are stacked without much padding."""
    if one.steps is None or other.steps is None:
        return False
    return max(one.steps, other.steps) <= WORTH_PADDING * min(one.steps, other.steps)


def _calls(cells: Sequence[Member], group: Sequence[int], room: float) -> list[list[list[int]]]:
    sets = grouped(group, lambda place: cells[place].samples)
    if len(sets) == 1:
        return [sets]
    numbers = [[cells[place].numbers for place in of_set] for of_set in sets]
    if all(each == numbers[0] for each in numbers):
        together = sets
    elif len(group) < WORTH_SHARING * len(sets):
        together = [[place] for of_set in sets for place in of_set]
    else:
        return [[of_set] for of_set in sets]
    copied = sum(cells[of_set[0]].copied for of_set in together)
    return [together] if copied <= room else [[of_set] for of_set in sets]
