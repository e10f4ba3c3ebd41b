"""Settings that the user overrides: `training.rounds=20`, `fedlsa.lam=0.7`."""

from __future__ import annotations

from typing import Any

import yaml

from bench.config.cell import SECTIONS
from bench.errors import UserError, nearest


def parse_assignment(text: str) -> tuple[str, Any]:
    """`fedlsa.lam=0.7` → the key and the value, read as YAML."""
    key, equals, value = text.partition("=")
    if not (equals and key and value):
        raise UserError(f"--set {text}: expected KEY=VALUE, such as fedlsa.lam=0.7")
    try:
        return key, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):  # the latter for 2025-13-01
        raise UserError(f"--set {text}: '{value}' is not a YAML value") from None


def parse_sweep(text: str) -> tuple[str, list[Any]]:
    """`fedlsa.lam=0.1,0.7` → the key and its values."""
    key, equals, values = text.partition("=")
    try:
        listed = yaml.safe_load(f"[{values}]") if equals else []
    except (yaml.YAMLError, ValueError):
        listed = []
    if not isinstance(listed, list) or len(listed) < 2:
        raise UserError(f"--sweep {text}: expected KEY=A,B,… with two values or more; for one use --set")
    return key, [_number(value) for value in listed]


def _number(value: Any) -> Any:
    """YAML takes 1e-3 for a text, which nobody means."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def assign(raw: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a suite's raw content: one of a section, or a hyperparameter of a method."""
    if key == "encoder" and isinstance(value, str):
        key = "encoder.name"
    if key == "model" and isinstance(value, str):
        value = {"name": value}
    section, _, rest = key.partition(".")
    if not rest and ((section in SECTIONS and isinstance(value, dict)) or section == "unseen"):
        raw[section] = value
        return
    entries = [entry for entry in raw["methods"] if entry["name"] == section]
    if not rest or not (entries or section in SECTIONS):
        known = [*SECTIONS, *(entry["name"] for entry in raw["methods"])]
        hint = f"write {section}.KEY" if section in known else nearest(section, known)
        raise UserError(
            f"cannot set '{key}': it must begin with a method or a section of the suite and a dot; {hint}"
        )
    for entry in entries:
        target = entry.setdefault("set", {})
        if rest.startswith("optimiser.") and not target.get("optimiser"):
            from bench.suite.methods import own_optimiser

            own = own_optimiser(entry["name"], {k: v for k, v in target.items() if k != "optimiser"})
            target["optimiser"] = dict(own or raw["training"]["optimiser"])
        _assign_within(target, key, value)
    if not entries:
        _assign_within(raw.setdefault(section, {}), key, value)


def _assign_within(target: dict[str, Any], key: str, value: Any) -> None:
    """Set what is behind the first part of the dotted key."""
    first, *outer, last = key.split(".")
    for depth, part in enumerate(outer, start=1):
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            whole = ".".join([first, *outer[:depth]])
            raise UserError(f"cannot set '{key}': '{part}' is a value and has no keys; set {whole}")
    target[last] = value
