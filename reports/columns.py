"""Columns of a table: measured ones, ranked among the federated methods, and those derived from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reports.scores import BySeed, Entry
from reports.statistics import leads_clearly, mean_and_std
from reports.table import MISSING, Cell, Mark, number, signed_number

NOISE = "≈"
MISSING_CELL = Cell(MISSING, missing=True)

RowKey = tuple[str, str]
"""Method and label: what a row is known by."""


@dataclass(frozen=True)
class Column:
    """A heading and a cell for each row that it concerns."""

    heading: str
    cells: Mapping[RowKey, Cell]


def key_of(entry: Entry) -> RowKey:
    """What a row is known by."""
    return entry.method, entry.label


def measured(
    heading: str, rows: Sequence[Entry], values: Sequence[BySeed], lower_is_better: bool = False
) -> Column:
    """Mean ± sample std over seeds, the best and the second of the ranked rows marked."""
    cells = [_summary(by_seed, len(row.cells)) for row, by_seed in zip(rows, values, strict=True)]
    ranked = {
        index: mean
        for index, row in enumerate(rows)
        if row.ranked and (mean := cells[index].mean) is not None
    }
    for index, mark in zip(ranked, _marks(list(ranked.values()), lower_is_better), strict=True):
        cells[index] = replace(cells[index], mark=mark)
    return Column(heading, {key_of(row): cell for row, cell in zip(rows, cells, strict=True)})


def averages(heading: str, rows: Sequence[Entry]) -> Column:
    """The AVG of each row; the best one carries a sign if its lead is inside the noise."""
    column = measured(heading, rows, [row.averages() for row in rows])
    contest = [row for row in rows if row.ranked and not column.cells[key_of(row)].missing]
    best = [row for row in contest if column.cells[key_of(row)].mark == "best"]
    if not best or (len(best) == 1 and _is_clear(best[0], contest, column)):
        return column
    noisy = {key_of(row): column.cells[key_of(row)] for row in best}
    signed = {key: replace(cell, signs=(*cell.signs, NOISE)) for key, cell in noisy.items()}
    return Column(heading, {**column.cells, **signed})


def differences(heading: str, column: Column, references: Mapping[RowKey, float | None]) -> Column:
    """A column's means minus the reference of each row that has one."""
    cells = {}
    for key, reference in references.items():
        cell = column.cells[key]
        if cell.mean is None or reference is None:
            cells[key] = MISSING_CELL
        else:
            difference = cell.mean - reference
            cells[key] = Cell(signed_number(difference), mean=difference, n=cell.n)
    return Column(heading, cells)


def printed(heading: str, numbers: Mapping[RowKey, float]) -> Column:
    """What papers print."""
    return Column(heading, {key: Cell(number(value), mean=value) for key, value in numbers.items()})


def _summary(by_seed: BySeed, planned: int) -> Cell:
    mean, std = mean_and_std(by_seed.values())
    if mean is None:
        return MISSING_CELL
    text = number(mean) if std is None else f"{number(mean)} ± {number(std)}"
    n = len(by_seed)
    return Cell(text, mean=mean, std=std, n=n, signs=(f"{n}/{planned}",) if n < planned else ())


def _marks(values: Sequence[float], lower_is_better: bool) -> list[Mark]:
    """Values that print alike share a mark; a shared first place leaves no second; one alone wins nothing."""
    if len(values) < 2:
        return [""] * len(values)
    shown = [-round(value, 2) if lower_is_better else round(value, 2) for value in values]
    first = max(shown)
    rest = [value for value in shown if value != first]
    second = max(rest) if len(rest) == len(shown) - 1 else None
    return ["best" if value == first else "second" if value == second else "" for value in shown]


def _is_clear(best: Entry, contest: Sequence[Entry], column: Column) -> bool:
    rivals = [row for row in contest if row is not best]
    closest = [index for index, row in enumerate(rivals) if column.cells[key_of(row)].mark == "second"]
    return leads_clearly(best.scores(), [row.scores() for row in rivals], closest)
