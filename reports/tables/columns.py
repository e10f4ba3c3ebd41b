"""Columns of a table: measured accuracies with marks for the best, and differences between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.numbers.scores import BySeed, Entry, reference_of
from reports.numbers.statistics import Scores, against, confidence_interval, leads_clearly, mean_and_std
from reports.tables.table import MISSING, Cell, Mark, number, signed_number

NOISE = "≈"
DIFFERS = "*"
MISSING_CELL = Cell(MISSING, missing=True)

RowKey = tuple[str, str]
"""Method and label, which identify a row."""


@dataclass(frozen=True)
class Column:
    """A heading and one cell per row that has a value; columns of a `group` share a heading above theirs."""

    heading: str
    cells: Mapping[RowKey, Cell]
    group: str = ""


def key_of(entry: Entry) -> RowKey:
    """Method and label, which identify a row."""
    return entry.method, entry.label


def measured(
    heading: str,
    rows: Sequence[Entry],
    values: Sequence[BySeed],
    lower_is_better: bool = False,
    tested: Sequence[Scores] | None = None,
) -> Column:
    """Mean ± sample std over seeds, the best and the second of the ranked rows marked.

    The best carries a sign if it is not significantly ahead of the runner-up, judged by the `tested` scores
    of each row, which are the values themselves unless given.
    """
    cells = [summary(by_seed, len(row.cells)) for row, by_seed in zip(rows, values, strict=True)]
    means = {
        index: mean
        for index, row in enumerate(rows)
        if row.ranked and (mean := cells[index].mean) is not None
    }
    marks = dict(zip(means, _marks(list(means.values()), lower_is_better), strict=True))
    if tested is None:
        sense = -1 if lower_is_better else 1
        tested = [{(seed, ""): sense * value for seed, value in by_seed.items()} for by_seed in values]
    clear = _is_clear(marks, tested)
    for index, mark in marks.items():
        signs = (*cells[index].signs, NOISE) if mark == "best" and not clear else cells[index].signs
        cells[index] = replace(cells[index], mark=mark, signs=signs)
    return Column(heading, {key_of(row): cell for row, cell in zip(rows, cells, strict=True)})


def averages(heading: str, rows: Sequence[Entry]) -> Column:
    """The AVG of each row, tested over seeds × domains against FedAvg and against the best."""
    scores = {key_of(row): row.scores() for row in rows}
    column = measured(heading, rows, [row.averages() for row in rows], tested=list(scores.values()))
    cells = dict(column.cells)
    contest = [key_of(row) for row in rows if row.ranked and not cells[key_of(row)].missing]
    if reference := reference_of(rows):
        others = [key for key in contest if key != key_of(reference)]
        found = against(scores[key_of(reference)], [scores[key] for key in others])
        for key, comparison in zip(others, found, strict=True):
            if comparison is not None:
                signs = (*cells[key].signs, DIFFERS) if comparison.significant else cells[key].signs
                cells[key] = replace(cells[key], p=comparison.p, signs=signs)
    if len(contest) > 1:
        best = max(contest, key=lambda key: cells[key].mean or 0.0)
        others = [key for key in contest if key != best]
        found = against(scores[best], [scores[key] for key in others])
        for key, comparison in zip(others, found, strict=True):
            cells[key] = replace(cells[key], p_best=comparison.p if comparison else None)
    return Column(heading, cells)


def gains(heading: str, rows: Sequence[Entry], reference: Entry) -> Column:
    """The AVG of each row minus that of the reference, over the seeds that both have."""
    cells = {}
    for row in rows:
        cell = gain(row, reference, Entry.averages)
        if cell.mean is not None:
            cell = Cell(signed_number(cell.mean), mean=cell.mean, n=cell.n, signs=cell.signs)
        cells[key_of(row)] = cell
    return Column(heading, cells)


def gain(ours: Entry, theirs: Entry, values: Callable[[Entry], BySeed]) -> Cell:
    """Ours minus theirs, mean ± sample std over the seeds that both have."""
    minuends, subtrahends = values(ours), values(theirs)
    common = sorted(minuends.keys() & subtrahends.keys())
    by_seed = {seed: minuends[seed] - subtrahends[seed] for seed in common}
    cell = summary(by_seed, max(len(ours.cells), len(theirs.cells)))
    if cell.mean is None:
        return cell
    return replace(cell, text=cell.text.replace(number(cell.mean), signed_number(cell.mean), 1))


def differences(heading: str, column: Column, references: Mapping[RowKey, float]) -> Column:
    """A column's means minus the reference of each row that has one."""
    cells = {}
    for key, reference in references.items():
        cell = column.cells[key]
        if cell.mean is None:
            cells[key] = MISSING_CELL
        else:
            difference = cell.mean - reference
            cells[key] = Cell(signed_number(difference), mean=difference, n=cell.n)
    return Column(heading, cells)


def printed(heading: str, numbers: Mapping[RowKey, float]) -> Column:
    """A column of the numbers that papers print."""
    return Column(heading, {key: Cell(number(value), mean=value) for key, value in numbers.items()})


def summary(by_seed: BySeed, planned: int) -> Cell:
    """Mean ± sample std over the available seeds, with a sign if more were planned."""
    mean, std = mean_and_std(by_seed.values())
    if mean is None:
        return MISSING_CELL
    text = number(mean) if std is None else f"{number(mean)} ± {number(std)}"
    n = len(by_seed)
    interval = confidence_interval(by_seed.values())
    return Cell(
        text, mean=mean, std=std, n=n, interval=interval, signs=(f"{n}/{planned}",) if n < planned else ()
    )


def _marks(values: Sequence[float], lower_is_better: bool) -> list[Mark]:
    """Values that print the same share a mark; two firsts leave no second; a single value is not marked."""
    if len(values) < 2:
        return [""] * len(values)
    shown = [-round(value, 2) if lower_is_better else round(value, 2) for value in values]
    first = max(shown)
    rest = [value for value in shown if value != first]
    second = max(rest) if len(rest) == len(shown) - 1 else None
    return ["best" if value == first else "second" if value == second else "" for value in shown]


def _is_clear(marks: Mapping[int, Mark], tested: Sequence[Scores]) -> bool:
    """Whether there is a single best that is significantly ahead of every second."""
    best = [index for index, mark in marks.items() if mark == "best"]
    if len(best) != 1:
        return False
    rivals = [index for index in marks if index != best[0]]
    closest = [place for place, index in enumerate(rivals) if marks[index] == "second"]
    return leads_clearly(tested[best[0]], [tested[index] for index in rivals], closest)
