"""Where the best value of a search lies in its range, and how far the range can be made wider."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bench.search.space import SearchSpace, Values
from bench.suite.methods import METHODS
from search_spaces.model import Distribution

MARGIN = 0.05
"""A value within this share of its range from one end is at a bound."""
FEWEST = 3
"""Of fewer values in a list, one is always the first or the last."""
DECADE = 10

End = Literal["lower", "upper"]
Ranges = Mapping[str, Sequence[float]]
"""Key → lower and upper end."""


class Limits(NamedTuple):
    """What a field accepts: its `ge` or `gt`, and its `le` or `lt`."""

    lower: float = -math.inf
    upper: float = math.inf
    above: bool = False
    """Whether the lower limit itself is refused."""
    below: bool = False
    """Whether the upper limit itself is refused."""


def at_bound(space: SearchSpace, method: str, values: Values) -> dict[str, End]:
    """The keys whose value lies at an end of its range, where the field accepts values beyond that end."""
    found: dict[str, End] = {}
    for key, domain in space.domains.items():
        end = _end(domain, (space.default | values)[key])
        if end is not None and not _is_hard(domain, end, field_limits(method, key)):
            found[key] = end
    return found


def wider(space: SearchSpace, method: str, ends: Mapping[str, End]) -> dict[str, list[float]]:
    """New ranges: further by a decade (log) or by the range's width, as far as the field accepts values.

    A list of values has no range and is left out.
    """
    found = {}
    for key, end in ends.items():
        domain = space.domains[key]
        if domain.kind != "choice":
            ends_now, further = list(domain.values), _further(domain, end, field_limits(method, key))
            ends_now[0 if end == "lower" else 1] = further
            if ends_now != list(domain.values):
                found[key] = ends_now
    return found


def with_ranges(space: SearchSpace, ranges: Ranges) -> SearchSpace:
    """The space with these ranges instead of its own."""
    changed = {
        key: Distribution.model_validate({space.domains[key].kind: list(ends)})
        for key, ends in ranges.items()
    }
    return replace(space, domains={**space.domains, **changed})


def field_limits(method: str, key: str) -> Limits:
    """What the method's field of this dotted key accepts; of several optimisers, what one of them does."""
    kinds: list[type[BaseModel]] = [METHODS.load(method)]
    *path, last = key.split(".")
    for part in path:
        kinds = [inner for kind in kinds for inner in _models_in(kind, part)]
    limits = [_limits(kind.model_fields[last]) for kind in kinds if last in kind.model_fields]
    if not limits:
        return Limits()
    lowest = min(limits, key=lambda each: (each.lower, each.above))
    highest = max(limits, key=lambda each: (each.upper, not each.below))
    return Limits(lowest.lower, highest.upper, lowest.above, highest.below)


def _models_in(kind: type[BaseModel], name: str) -> Iterator[type[BaseModel]]:
    """The classes that a field may have an object of."""
    waiting = [kind.model_fields[name].annotation] if name in kind.model_fields else []
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        waiting += get_args(annotation)


def _limits(field: FieldInfo) -> Limits:
    def given(name: str) -> float | None:
        return next(
            (found for each in field.metadata if (found := getattr(each, name, None)) is not None), None
        )

    least, above, most, below = given("ge"), given("gt"), given("le"), given("lt")
    return Limits(
        lower=next((limit for limit in (least, above) if limit is not None), -math.inf),
        upper=next((limit for limit in (most, below) if limit is not None), math.inf),
        above=above is not None,
        below=below is not None,
    )


def _end(domain: Distribution, value: Any) -> End | None:
    """The end of its range that a value lies at, if any."""
    if domain.kind == "choice":
        if len(domain.values) < FEWEST or not all(map(_is_number, [*domain.values, value])):
            return None
        low, high = min(domain.values), max(domain.values)
    else:
        low, high = domain.values
    if domain.kind in ("choice", "int"):
        return "lower" if value <= low else "upper" if value >= high else None
    if domain.kind == "log_uniform":
        low, high, value = math.log(low), math.log(high), math.log(max(value, low / DECADE))
    place = (value - low) / (high - low)
    return "lower" if place <= MARGIN else "upper" if place >= 1 - MARGIN else None


def _is_hard(domain: Distribution, end: End, limits: Limits) -> bool:
    """Whether the field accepts nothing beyond the end of the range."""
    if end == "lower":
        return bool(min(domain.values) <= limits.lower)
    return bool(max(domain.values) >= limits.upper)


def _further(domain: Distribution, end: End, limits: Limits) -> float:
    """The new end of a range."""
    low, high = map(float, domain.values)
    old, limit, refused = (
        (low, limits.lower, limits.above) if end == "lower" else (high, limits.upper, limits.below)
    )
    if domain.kind == "log_uniform":
        moved = low / DECADE if end == "lower" else high * DECADE
    else:
        moved = low - (high - low) if end == "lower" else high + (high - low)
    beyond = moved <= limit if end == "lower" else moved >= limit
    if beyond:
        # a limit that is itself refused is approached to a hundredth of the way
        moved = limit if not refused else limit + (old - limit) / 100
    if domain.kind == "int":
        return math.ceil(moved) if end == "lower" else math.floor(moved)
    return float(f"{moved:.8g}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
