"""Mistakes found before a search starts: missing data, and values that its method does not take."""

from __future__ import annotations

from pathlib import Path

from bench.data.cache import checked_thoroughly
from bench.engine.assembly import Assembled, assemble, check_method
from bench.search.journal import Trial
from bench.search.plan import Search


def check_search(search: Search, trials: int, data_root: Path | None) -> Assembled:
    """Every value is shown to the method before anything starts; returns the default's problem.

    Data that were damaged in the cache are made again.
    """
    default = search.cells({})
    with checked_thoroughly():
        settings = {cell.variant: assemble(cell.config, data_root) for cell in default if cell.seed == 0}
    points = list(search.space.corners())
    if search.algorithm == "grid":
        past: list[Trial] = []
        for number in range(trials):
            values = search.suggestion(number, past)
            if values is None:
                break
            past.append(Trial(number, values))
        points += [trial.values for trial in past]
    for values in points:
        for cell in search.cells(values):
            if cell.seed == 0:
                check_method(cell.config, settings[cell.variant])
    return next(iter(settings.values()))
