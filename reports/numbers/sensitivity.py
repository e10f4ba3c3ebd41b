"""Final AVG over the values of one setting, and over those of two, while all others are fixed.

In a sweep the others are at their defaults or, where those were not run, at the best values there are. In a
suite with variants there is a line for every combination of the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.text import symbol
from reports.numbers.designs import Combination, Design, Point, Value, best_of, ordered, place_names
from reports.numbers.swept import settings_in_words

FEWEST_VALUES = 3
"""In a suite with variants: two values are a comparison, which the table already makes."""
FEWEST_SWEPT = 2


@dataclass(frozen=True)
class Sweep:
    """One setting that varies while all others are fixed."""

    parameter: str
    line: str
    """The name of the line: the row, and what tells it from other lines of a suite with variants."""
    values: Mapping[Value, Point]
    """In ascending order."""
    place: str = ""
    """Suite, setting and dataset, as far as the lines differ in them."""
    fixed: str = ""
    """Where the other swept keys are: `τ=0.1 (default)`."""
    default: Value | None = None
    """None if it is not among the values or not known."""
    best: Value | None = None
    """None where there is no choice: the values are of the problem, or no sweep says what they are."""


@dataclass(frozen=True)
class Grid:
    """Two settings that vary together; named like a line."""

    parameters: tuple[str, str]
    line: str
    values: Mapping[tuple[Value, Value], Point]
    place: str = ""
    fixed: str = ""
    default: tuple[Value, Value] | None = None
    best: frozenset[tuple[Value, Value]] = frozenset()
    """The best under each value of the problem."""

    @property
    def title(self) -> str:
        return ", ".join(filter(None, (self.line, self.place, self.fixed)))


@dataclass(frozen=True)
class _Slice:
    """The points of a design in which only some keys vary."""

    design: Design
    keys: tuple[str, ...]
    others: Mapping[str, Value]
    points: Mapping[Combination, Point]

    @property
    def default(self) -> Combination | None:
        """The default of the varying keys, if it is among the points."""
        defaults = self.design.defaults or {}
        at = tuple(defaults.get(key, "") for key in self.keys)
        return at if at in self.points else None

    @property
    def best(self) -> set[Combination]:
        if self.design.defaults is None:
            return set()
        return best_of(self.keys, {at: point.mean or 0.0 for at, point in self.points.items()})

    @property
    def fixed(self) -> str:
        """The other keys of a sweep in words."""
        defaults = self.design.defaults
        if defaults is None or not self.others:
            return ""
        at_default = {key: value for key, value in self.others.items() if value == defaults[key]}
        at_best = {key: value for key, value in self.others.items() if key not in at_default}
        parts = [(at_default, "default"), (at_best, "best; the default was not run")]
        return ", ".join(f"{settings_in_words(values)} ({why})" for values, why in parts if values)


def sweeps(designs: Sequence[Design]) -> list[Sweep]:
    """Every setting that takes several values while all others are fixed."""
    found = []
    places = place_names([design.place for design in designs])
    for group in _by_method(designs):
        for key in _keys(group):
            lines = [each for design in group for each in _slices(design, (key,)) if _is_line(each)]
            for each, name in zip(lines, _names(lines), strict=True):
                values = {at[0]: point for at, point in each.points.items()}
                best, default = next(iter(each.best), None), each.default
                found.append(
                    Sweep(
                        parameter=key,
                        line=name,
                        values={value: values[value] for value in ordered(values)},
                        place=places[each.design.place],
                        fixed=each.fixed,
                        default=default[0] if default else None,
                        best=best[0] if best else None,
                    )
                )
    return found


def grids(designs: Sequence[Design]) -> list[Grid]:
    """Every pair of settings with more combinations than varying one at a time would give."""
    found = []
    places = place_names([design.place for design in designs])
    for group in _by_method(designs):
        for first, second in combinations(_keys(group), 2):
            maps = [each for design in group for each in _slices(design, (first, second)) if _is_map(each)]
            for each, name in zip(maps, _names(maps), strict=True):
                found.append(
                    Grid(
                        parameters=(first, second),
                        line=name,
                        values={(at[0], at[1]): point for at, point in each.points.items()},
                        place=places[each.design.place],
                        fixed=each.fixed,
                        default=(each.default[0], each.default[1]) if each.default else None,
                        best=frozenset((at[0], at[1]) for at in each.best),
                    )
                )
    return found


def key_names(keys: Iterable[str]) -> dict[str, str]:
    """Key → its symbol, or the whole key where others have the same symbol."""
    symbols = {key: symbol(key) for key in keys}
    shared = list(symbols.values())
    return {key: name if shared.count(name) == 1 else key for key, name in symbols.items()}


def _by_method(designs: Sequence[Design]) -> list[list[Design]]:
    methods: dict[str, list[Design]] = {}
    for design in designs:
        methods.setdefault(design.method, []).append(design)
    return list(methods.values())


def _keys(designs: Sequence[Design]) -> list[str]:
    return list(dict.fromkeys(key for design in designs for key in design.keys))


def _is_line(part: _Slice) -> bool:
    fewest = FEWEST_VALUES if part.design.defaults is None else FEWEST_SWEPT
    return len(part.points) >= fewest


def _is_map(part: _Slice) -> bool:
    rows, columns = ({at[place] for at in part.points} for place in (0, 1))
    return min(len(rows), len(columns)) > 1 and len(part.points) > len(rows) + len(columns) - 1


def _slices(design: Design, keys: tuple[str, ...]) -> list[_Slice]:
    """The parts of a design in which only these keys vary; of a sweep, the one to show."""
    if not set(keys) <= set(design.keys):
        return []
    own = [design.keys.index(key) for key in keys]
    rest = [place for place in range(len(design.keys)) if place not in own]
    parts: dict[Combination, dict[Combination, Point]] = {}
    for at, point in design.measured.items():
        others = tuple(at[place] for place in rest)
        parts.setdefault(others, {})[tuple(at[place] for place in own)] = point
    slices = [
        _Slice(design, keys, {design.keys[place]: value for place, value in zip(rest, at, strict=True)}, own)
        for at, own in parts.items()
    ]
    return slices if design.defaults is None else _shown(slices, design.defaults)


def _shown(slices: Sequence[_Slice], defaults: Mapping[str, Value]) -> list[_Slice]:
    """The slice with as many of the other keys at their defaults as there are, the best of several."""
    several = [each for each in slices if len(each.points) > 1]
    for key in several[0].others if several else ():
        several = [each for each in several if each.others[key] == defaults[key]] or several
    return (
        [max(several, key=lambda each: max(point.mean or 0.0 for point in each.points.values()))]
        if several
        else []
    )


def _names(slices: Sequence[_Slice]) -> list[str]:
    """The row of each, followed in suites with variants by what tells it from others of the same row."""
    names = []
    for each in slices:
        alike = [
            _settings(other)
            for other in slices
            if (other.design.row, other.design.place) == (each.design.row, each.design.place)
        ]
        differing = {
            key: value
            for key, value in _settings(each).items()
            if any(key not in other or other[key] != value for other in alike)
        }
        names.append(", ".join(filter(None, (each.design.row, settings_in_words(differing)))))
    return names


def _settings(part: _Slice) -> dict[str, Any]:
    """What is fixed in the part of a suite with variants; that of a sweep is said elsewhere."""
    if part.design.defaults is not None:
        return {}
    return {**part.others, **part.design.constants}
