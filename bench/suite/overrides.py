"""Settings that the user overrides: `training.rounds=20`, `fedlsa.lam=0.7`, `optimiser.lr=0.1`.

The first part of a key is a section of the suite, or what names rows: a method (all of its rows), the label
of a row (`FedAvg (plain SGD).optimiser.lr`), or `optimiser` (the clients' optimiser in every row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from bench.config.cell import SECTIONS
from bench.errors import UserError, nearest

OPTIMISER = "optimiser"


class Address(NamedTuple):
    """What a dotted key is about."""

    rows: Sequence[int] | None
    """The positions of the rows; None: a section of the suite."""
    key: str
    """Within the rows; for a section, the whole key."""


def parse_assignment(text: str) -> tuple[str, Any]:
    """`fedlsa.lam=0.7` → the key and the value, read as YAML."""
    key, equals, value = key_and_value(text)
    if not (equals and key and value):
        raise UserError(f"--set {text}: expected KEY=VALUE, such as fedlsa.lam=0.7")
    try:
        return key, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):  # the latter for 2025-13-01
        raise UserError(f"--set {text}: '{value}' is not a YAML value") from None


def assign(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a suite's raw content: one of a section, or a hyperparameter of rows."""
    if key == "encoder" and isinstance(value, str):
        key = "encoder.name"
    if key == "model" and isinstance(value, str):
        value = {"name": value}
    section, _, rest = key.partition(".")
    if not rest and ((section in SECTIONS and isinstance(value, dict)) or section == "unseen"):
        raw[section] = value
        return
    rows, within = address(key, raw["methods"])
    if rows is None:
        _assign_within(raw.setdefault(section, {}), rest, value, key)
    for position in rows or ():
        assign_to_row(raw["methods"][position], within, value, raw["training"]["optimiser"], key)


def assign_to_row(
    entry: dict[str, Any], key: str, value: Any, optimiser: Mapping[str, Any], whole: str
) -> None:
    """Set a hyperparameter in a row's raw content; `optimiser` is the suite's, `whole` the key as given."""
    target = entry.setdefault("set", {})
    if key.startswith(f"{OPTIMISER}.") and not target.get(OPTIMISER):
        from bench.suite.methods import own_optimiser

        own = own_optimiser(entry["name"], {name: each for name, each in target.items() if name != OPTIMISER})
        target[OPTIMISER] = dict(own or optimiser)
    _assign_within(target, key, value, whole)


def address(key: str, rows: Sequence[Mapping[str, Any]]) -> Address:
    """What the key is about, among rows with a `name` and possibly a `label`; a UserError if nothing."""
    first, _, rest = key.partition(".")
    if first in SECTIONS and rest:
        return Address(None, key)
    if first == OPTIMISER and rest:
        return Address(range(len(rows)), key)
    named = [position for position, row in enumerate(rows) if row["name"] == first]
    if named and rest:
        return Address(named, rest)
    for position, label in _by_length(rows):
        if key.startswith(f"{label}.") and len(key) > len(label) + 1:
            return Address([position], key[len(label) + 1 :])
    known = [*SECTIONS, *(row["name"] for row in rows), *(row["label"] for row in rows if row.get("label"))]
    hint = f"write {first}.KEY" if first in known else nearest(first, known)
    raise UserError(
        f"cannot set '{key}': it must begin with a method, a row or a section of the suite and a dot; {hint}"
    )


def is_about_rows(key: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the key is about one of these rows, and not about a section or another row."""
    first, _, rest = key.partition(".")
    if first in SECTIONS or not rest:
        return False
    named = first == OPTIMISER or any(row["name"] == first for row in rows)
    return named or any(key.startswith(f"{label}.") for _, label in _by_length(rows))


def _by_length(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Positions and labels, the longest label first: the beginning of one may be another."""
    from bench.suite.methods import METHODS

    labels = [row.get("label") or METHODS.load(row["name"]).label for row in rows]
    return sorted(enumerate(labels), key=lambda each: -len(each[1]))


def key_and_value(text: str) -> tuple[str, str, str]:
    """A key that begins with a label may have a `=` of its own: `z = 8.noise=1`."""
    key, equals, value = text.partition("=")
    if "." not in key and key not in SECTIONS and "=" in value and "." in value.partition("=")[0]:
        rest, equals, value = value.partition("=")
        key = f"{key}={rest}"
    return key, equals, value


def _assign_within(target: dict[str, Any], key: str, value: Any, whole: str) -> None:
    """Set a dotted key of nested mappings."""
    *outer, last = key.split(".")
    before = whole.removesuffix(key)
    for depth, part in enumerate(outer, start=1):
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            parent = before + ".".join(outer[:depth])
            raise UserError(f"cannot set '{whole}': '{part}' is a value and has no keys; set {parent}")
    target[last] = value
