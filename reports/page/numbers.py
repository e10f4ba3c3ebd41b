"""Numbers for the page: no more digits than it shows, and null where a value is not finite."""

import math
from typing import Any

from bench.records.schema import finite


def short(value: object, digits: int = 4) -> float | int | None:
    """Rounded to some significant digits; whole numbers as integers."""
    number = finite(value)
    if number is None:
        return None
    rounded = float(f"{number:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def share(value: object) -> int | None:
    """An accuracy in hundredths of a percent."""
    number = finite(value)
    return None if number is None else round(10_000 * number)


def count(value: object) -> int | None:
    """A count, such as a number of bytes."""
    number = finite(value)
    return None if number is None else round(number)


def plain(value: Any) -> Any:
    """The value as valid JSON: numbers that are not finite become text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
