"""Nested mappings as flat ones with dotted keys."""

from collections.abc import Mapping
from typing import Any


def flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key → value, for any depth of nesting; an empty mapping has no keys."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found
