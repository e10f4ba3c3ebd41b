"""Sweeps: the values of keys, and the cross product of several keys.

`fedlsa.lam=0.1,0.5,0.9` lists the values, `fedlsa.lam=0.01..1:log5` takes five from a range.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import yaml

from bench.errors import UserError
from bench.suite.overrides import key_and_value

Grid = Mapping[str, Sequence[Any]]
"""Dotted key → its values; what is meant is their cross product."""

DIGITS = 4
"""Significant digits of a value taken from a range."""
MOST_VALUES = 10_000
RANGE = re.compile(r"(?P<low>[^,\s]+?)\.\.(?P<high>[^,\s:]+):(?P<kind>[a-z]+)(?P<count>\d+)")
KINDS = ("log", "linear", "random", "uniform")
EXAMPLES = "0.1,0.5,0.9 or 0.01..1:log5"


def parse_sweep(text: str) -> tuple[str, list[Any]]:
    """`fedlsa.lam=0.1,0.7` or `fedlsa.lam=0.01..1:log5` → the key and its values."""
    key, equals, values = key_and_value(text)
    if not (equals and key and values):
        raise UserError(f"--sweep {text}: expected KEY=VALUES, such as fedlsa.lam={EXAMPLES}")
    return key, values_of(key, values)


def values_of(key: str, given: Any) -> list[Any]:
    """The values of a swept key, given as a list or as a text: values separated by commas, or a range."""
    if isinstance(given, str):
        if match := RANGE.fullmatch(given.strip()):
            return _in_range(key, given, **match.groupdict())
        try:
            given = yaml.safe_load(f"[{given}]")
        except (yaml.YAMLError, ValueError):
            given = None
    if not isinstance(given, list | tuple) or not given:
        raise UserError(f"cannot sweep '{key}': give a list of values or a range, such as {EXAMPLES}")
    values = [_number(value) for value in given]
    if twice := [value for place, value in enumerate(values) if value in values[:place]]:
        raise UserError(f"cannot sweep '{key}': the value {twice[0]} is there twice; give each value once")
    return values


def combinations(grid: Grid) -> Iterator[dict[str, Any]]:
    """Every combination of values; the last key changes fastest."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def crossed(grids: Sequence[Grid], more: Grid, fixed: Sequence[str] = ()) -> tuple[dict[str, list[Any]], ...]:
    """Each of the grids crossed with `more`, which replaces values of the same keys; without `fixed` keys."""
    found = [
        {key: list(values) for key, values in {**grid, **more}.items() if key not in fixed}
        for grid in grids or ({},)
    ]
    return tuple(grid for grid in found if grid)


def _in_range(key: str, text: str, low: str, high: str, kind: str, count: str) -> list[float]:
    import numpy as np  # takes long to import, and most suites sweep no range

    ends, number = [_number(low), _number(high)], int(count)
    where = f"cannot sweep '{key}' over {text}"
    if kind not in KINDS:
        raise UserError(f"{where}: '{kind}' is unknown; write one of {', '.join(KINDS)} and a number")
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends) or ends[0] >= ends[1]:
        raise UserError(f"{where}: write LOW..HIGH with two numbers, the lower one first")
    if not 1 <= number <= MOST_VALUES:
        raise UserError(f"{where}: the number of values must be between 1 and {MOST_VALUES}")
    logarithmic = kind in ("log", "random")
    if logarithmic and ends[0] <= 0:
        raise UserError(f"{where}: the ends of a logarithmic range must be above 0; use linear or uniform")
    first, last = np.log(ends) if logarithmic else ends
    if kind in ("log", "linear"):
        points = np.linspace(first, last, number)
    else:  # the same for the same key and range, so that a sweep can be resumed and given more values
        random = np.random.default_rng(zlib.crc32(f"{key}={low}..{high}".encode()))
        points = np.sort(random.uniform(first, last, number))
    values = [float(f"{value:.{DIGITS}g}") for value in (np.exp(points) if logarithmic else points)]
    return list(dict.fromkeys(values))


def _number(value: Any) -> Any:
    """YAML takes 1e-3 for a text, which nobody means."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
