"""Where two nested records differ, key by key."""

import json
from collections.abc import Mapping
from typing import Any

from reports.numbers.nesting import flat

ABSENT = "absent"


def flattened(record: Mapping[str, Any]) -> dict[str, str]:
    """Dotted key → value as text on one line; an empty mapping has no keys."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in flat(record).items()
    }


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Dotted key → both values, for the keys whose values differ."""
    ours, theirs = flattened(first), flattened(second)
    return {
        key: (ours.get(key, ABSENT), theirs.get(key, ABSENT))
        for key in dict.fromkeys([*ours, *theirs])
        if ours.get(key, ABSENT) != theirs.get(key, ABSENT)
    }
