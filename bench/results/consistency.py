"""Whether what is recorded of a cell agrees with itself: everything in a result follows from its rounds."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, pstdev

from bench.config.cell import identity
from bench.records.reader import CellRecord
from bench.records.schema import Oracle, validations
from bench.records.selection import best_round

LAST = 5
"""Evaluated rounds at the end whose mean a result holds."""


def inconsistencies(cell: CellRecord) -> list[str]:
    """One clause per contradiction in the record of a finished cell; empty if there is none."""
    return [*_of_the_configuration(cell), *_of_the_rounds(cell), *_of_the_scores(cell), *_of_the_sums(cell)]


def _of_the_configuration(cell: CellRecord) -> Iterator[str]:
    if cell.config is None or cell.result is None:
        yield "the cell is not finished"
        return
    named = identity(cell.config.identifying())
    if named != cell.cell_id:
        yield f"the configuration is that of cell {named}"
    if cell.result.cell_id != cell.cell_id:
        yield f"the result is that of cell {cell.result.cell_id}"
    planned = cell.config.training
    if cell.result.rounds != planned.rounds and not (planned.early_stop and cell.result.selected):
        yield f"the result has {cell.result.rounds} rounds, the configuration {planned.rounds}"


def _of_the_rounds(cell: CellRecord) -> Iterator[str]:
    if cell.result is None:
        return
    numbers = [line.round for line in cell.rounds if line.round > 0]
    if numbers != list(range(1, cell.result.rounds + 1)):
        yield "rounds are missing"
    if len({tuple(line.test) for line in cell.rounds if line.test}) > 1:
        yield "its rounds were tested on different domains"
    for line in cell.rounds:
        for domain, accuracy in (line.test or {}).items():
            if not 0 <= accuracy <= 1:
                yield f"the accuracy on {domain} in round {line.round} is {accuracy}"


def _of_the_scores(cell: CellRecord) -> Iterator[str]:
    if cell.result is None or not cell.rounds:
        return
    last, final = cell.rounds[-1], cell.result.final
    if selected := cell.result.selected:
        last = next((line for line in cell.rounds if line.round == selected.round), last)
        rule = cell.config.training.early_stop if cell.config else None
        best = best_round(validations(cell.rounds), rule.min_delta if rule else 0.0)
        if best is None or (best.round, best.validation) != (selected.round, selected.validation):
            yield f"round {selected.round} is not the best on validation"
    test: dict[str, float] = last.test or {}
    if not test or final.test != test:
        yield f"the final accuracies are not those of {'that round' if selected else 'the last round'}"
        return
    averages = {line.round: line.average for line in cell.rounds if line.average is not None}
    oracle = cell.result.oracle or Oracle()
    highest = max(averages, key=lambda number: averages[number])
    for name, stored, expected in (
        ("avg", final.avg, averages[last.round]),
        ("std", final.std, pstdev(test.values())),
        ("personal", final.personal, last.personal),
        ("validation", final.validation, last.validation),
        ("last5_avg", cell.result.last5_avg, fmean(list(averages.values())[-LAST:])),
        ("oracle.round", oracle.round, highest),
        ("oracle.avg", oracle.avg, averages[highest]),
    ):
        if stored != expected:  # means and deviations are rounded correctly, so they are the same everywhere
            yield f"{name} is {stored}, but follows from the rounds as {expected}"


def _of_the_sums(cell: CellRecord) -> Iterator[str]:
    if cell.result is None:
        return
    for name in ("bytes_up", "bytes_down", "dropped"):
        total = sum(getattr(line, name) for line in cell.rounds)
        if getattr(cell.result, name) != total:
            yield f"{name} is {getattr(cell.result, name)}, but the rounds sum up to {total}"
