"""Columns of a table: measured accuracies with marks for the best, and differences between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.numbers.scores import BySeed, RowKey, RowScores, reference_of
from reports.numbers.statistics import against, confidence_interval, leads_clearly, mean_and_std
from reports.tables.table import MISSING, Entry, Mark, number, signed_number

NOT_AHEAD = "≈"
DIFFERS = "*"
MISSING_ENTRY = Entry(MISSING, missing=True)


@dataclass(frozen=True)
class Column:
    """A heading and one entry per row that has a value; columns of a `group` share a heading above theirs."""

    heading: str
    entries: Mapping[RowKey, Entry]
    group: str = ""


def measured(
    heading: str,
    rows: Sequence[RowScores],
    values: Sequence[BySeed],
    lower_is_better: bool = False,
) -> Column:
    """Mean ± sample std over seeds, the best and the second of the ranked rows marked.

    The best carries a sign if it is not significantly ahead of the runner-up.
    """
    entries = [summary(by_seed, len(row.cells)) for row, by_seed in zip(rows, values, strict=True)]
    means = {
        index: mean
        for index, row in enumerate(rows)
        if row.ranked and (mean := entries[index].mean) is not None
    }
    marks = dict(zip(means, _marks(list(means.values()), lower_is_better), strict=True))
    sense = -1 if lower_is_better else 1
    clear = _is_clear(marks, [{seed: sense * value for seed, value in by_seed.items()} for by_seed in values])
    for index, mark in marks.items():
        signs = (*entries[index].signs, NOT_AHEAD) if mark == "best" and not clear else entries[index].signs
        entries[index] = replace(entries[index], mark=mark, signs=signs)
    return Column(heading, {row.key: entry for row, entry in zip(rows, entries, strict=True)})


def averages(heading: str, rows: Sequence[RowScores]) -> Column:
    """The AVG of each row, tested over the seeds against FedAvg and against the best."""
    scores = {row.key: row.averages() for row in rows}
    column = measured(heading, rows, list(scores.values()))
    entries = dict(column.entries)
    contest = [row.key for row in rows if row.ranked and not entries[row.key].missing]
    if reference := reference_of(rows):
        others = [key for key in contest if key != reference.key]
        found = against(scores[reference.key], [scores[key] for key in others])
        for key, comparison in zip(others, found, strict=True):
            if comparison is not None:
                signs = (*entries[key].signs, DIFFERS) if comparison.significant else entries[key].signs
                entries[key] = replace(entries[key], p=comparison.p, signs=signs)
    if len(contest) > 1:
        best = max(contest, key=lambda key: entries[key].mean or 0.0)
        others = [key for key in contest if key != best]
        found = against(scores[best], [scores[key] for key in others])
        for key, comparison in zip(others, found, strict=True):
            entries[key] = replace(entries[key], p_best=comparison.p if comparison else None)
    return Column(heading, entries)


def plain(heading: str, rows: Sequence[RowScores], values: Sequence[BySeed]) -> Column:
    """Mean ± sample std over seeds, without marks for the best."""
    entries = [summary(by_seed, len(row.cells)) for row, by_seed in zip(rows, values, strict=True)]
    return Column(heading, {row.key: entry for row, entry in zip(rows, entries, strict=True)})


def gains(heading: str, rows: Sequence[RowScores], reference: RowScores) -> Column:
    """The AVG of each row minus that of the reference, over the seeds that both have."""
    entries = {}
    for row in rows:
        entry = gain(row, reference, RowScores.averages)
        if entry.mean is not None:
            entry = Entry(signed_number(entry.mean), mean=entry.mean, n=entry.n, signs=entry.signs)
        entries[row.key] = entry
    return Column(heading, entries)


def gain(ours: RowScores, theirs: RowScores, values: Callable[[RowScores], BySeed]) -> Entry:
    """Ours minus theirs, mean ± sample std over the seeds that both have."""
    minuends, subtrahends = values(ours), values(theirs)
    common = sorted(minuends.keys() & subtrahends.keys())
    by_seed = {seed: minuends[seed] - subtrahends[seed] for seed in common}
    entry = summary(by_seed, max(len(ours.cells), len(theirs.cells)))
    if entry.mean is None:
        return entry
    return replace(entry, text=entry.text.replace(number(entry.mean), signed_number(entry.mean), 1))


def differences(heading: str, column: Column, references: Mapping[RowKey, float]) -> Column:
    """A column's means minus the reference of each row that has one."""
    entries = {}
    for key, reference in references.items():
        entry = column.entries[key]
        if entry.mean is None:
            entries[key] = MISSING_ENTRY
        else:
            difference = entry.mean - reference
            entries[key] = Entry(signed_number(difference), mean=difference, n=entry.n)
    return Column(heading, entries)


def printed(heading: str, numbers: Mapping[RowKey, float]) -> Column:
    """A column of the numbers that papers print."""
    return Column(heading, {key: Entry(number(value), mean=value) for key, value in numbers.items()})


def summary(by_seed: BySeed, planned: int) -> Entry:
    """Mean ± sample std over the available seeds, with a sign if more were planned."""
    mean, std = mean_and_std(by_seed.values())
    if mean is None:
        return MISSING_ENTRY
    text = number(mean) if std is None else f"{number(mean)} ± {number(std)}"
    n = len(by_seed)
    interval = confidence_interval(by_seed.values())
    return Entry(
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


def _is_clear(marks: Mapping[int, Mark], tested: Sequence[BySeed]) -> bool:
    """Whether there is a single best that is significantly ahead of every second."""
    best = [index for index, mark in marks.items() if mark == "best"]
    if len(best) != 1:
        return False
    rivals = [index for index in marks if index != best[0]]
    closest = [place for place, index in enumerate(rivals) if marks[index] == "second"]
    return leads_clearly(tested[best[0]], [tested[index] for index in rivals], closest)
