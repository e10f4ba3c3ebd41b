"""Settings that vary, as the page needs them: lines and maps of variants, and designs of a sweep."""

from typing import Any

from bench.records.reader import Run
from reports.numbers.designs import Design, Point, designs_of, place_names
from reports.numbers.sensitivity import grids, key_names, sweeps
from reports.numbers.statistics import mean_and_std
from reports.numbers.swept import is_of_the_problem
from reports.page.numbers import short


def sensitivity_content(run: Run) -> dict[str, Any]:
    """`sweeps` and `grids` of variants; `designs` of a sweep, whose lines and maps the page makes itself."""
    designs = designs_of([run])
    of_variants = [design for design in designs if design.defaults is None]
    swept = [design for design in designs if design.defaults is not None and design.keys]
    names = key_names(dict.fromkeys(key for design in designs for key in design.keys))
    places = place_names([design.place for design in swept])
    return {
        "sweeps": [
            {
                "name": names[sweep.parameter],
                "line": ", ".join(filter(None, (sweep.line, sweep.place))),
                "points": [[value, *_summary(point)] for value, point in sweep.values.items()],
            }
            for sweep in sweeps(of_variants)
        ],
        "grids": [
            {
                "names": [names[key] for key in grid.parameters],
                "line": grid.title,
                "points": [[*at, *_summary(point)] for at, point in grid.values.items()],
            }
            for grid in grids(of_variants)
        ],
        "designs": [
            {"place": places[design.place], "row": design.row, **_design(design, names)} for design in swept
        ],
    }


def _design(design: Design, names: dict[str, str]) -> dict[str, Any]:
    defaults = design.defaults or {}
    return {
        "keys": [
            {
                "key": key,
                "name": names[key],
                "ofTheProblem": is_of_the_problem(key),
                "default": defaults[key],
                "values": design.levels(key),
            }
            for key in design.keys
        ],
        "points": [[list(at), *_summary(point)] for at, point in design.measured.items()],
    }


def _summary(point: Point) -> list[float | int | None]:
    mean, std = mean_and_std(point.by_seed.values())
    return [short(mean, 6), short(std, 6), len(point.by_seed)]
