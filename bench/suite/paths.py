"""Paths in a suite file start from the folder of the file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

OPTIONS: Final = {"dataset": ("path", "tokenizer"), "model": ("path", "weights", "source")}
"""Section → its options that may be paths."""
METHOD_FILE: Final = ".py"


def beside(folder: Path, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a suite file in this folder, with the full paths of what it names there.

    What is not in the folder stays as it is: a name, or a path that starts from somewhere else. So does what
    the current directory has under the same path, since the paths of own data are part of a cell's identity.
    """
    found = {key: _section(folder, str(key), value) for key, value in raw.items()}
    if isinstance(entries := raw.get("methods"), list):
        found["methods"] = [_method(folder, entry) for entry in entries]
    if isinstance(variants := raw.get("variants"), list):
        found["variants"] = [_variant(folder, variant) for variant in variants]
    if isinstance(sweep := raw.get("sweep"), Mapping | list):
        found["sweep"] = [_sweep(folder, grid) for grid in ([sweep] if isinstance(sweep, Mapping) else sweep)]
    return found


def _section(folder: Path, key: str, value: Any) -> Any:
    """The value of a section, or of a dotted key inside one."""
    section, _, option = key.partition(".")
    if section == "encoder":
        if isinstance(value, Mapping) and "name" in value:
            return {**value, "name": _encoder(folder, value["name"])}
        return _encoder(folder, value) if option in ("", "name") else value
    if isinstance(value, Mapping) and section in OPTIONS and not option:
        return {name: _section(folder, f"{section}.{name}", given) for name, given in value.items()}
    return _place(folder, value) if option in OPTIONS.get(section, ()) else value


def _encoder(folder: Path, name: Any) -> Any:
    """`timm:MODEL@FILE`, or a name without a file."""
    if not isinstance(name, str):
        return name
    model, at, file = name.partition("@")
    return f"{model}{at}{_place(folder, file)}" if file else name


def _method(folder: Path, entry: Any) -> Any:
    if isinstance(entry, Mapping):
        named = {"name": _method(folder, entry["name"])} if "name" in entry else {}
        model = {"model": _section(folder, "model", entry["model"])} if "model" in entry else {}
        return {**entry, **named, **model}
    if not (isinstance(entry, str) and entry.endswith(METHOD_FILE)):
        return entry
    wrapper, plus, file = entry.rpartition("+")
    return f"{wrapper}{plus}{_place(folder, file)}"


def _variant(folder: Path, variant: Any) -> Any:
    settings = variant.get("set") if isinstance(variant, Mapping) else None
    if not isinstance(settings, Mapping):
        return variant
    return {**variant, "set": {key: _section(folder, str(key), value) for key, value in settings.items()}}


def _sweep(folder: Path, grid: Any) -> Any:
    if not isinstance(grid, Mapping):
        return grid
    return {
        key: [_section(folder, str(key), value) for value in values] if isinstance(values, list) else values
        for key, values in grid.items()
    }


def _place(folder: Path, text: Any) -> Any:
    """The full path of what the folder has under this path."""
    if not isinstance(text, str) or not text or Path(text).is_absolute():
        return text
    there = folder.absolute() / text
    with suppress(OSError, ValueError):  # of a text that cannot be a path
        if there.exists() and not (Path(text).exists() and there.samefile(text)):
            return str(there)
    return text
