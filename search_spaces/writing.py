"""A search space as the text of a file that a user goes on to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bench.errors import UserError
from bench.suite.methods import METHODS
from search_spaces.derived import derived_space, own_fields
from search_spaces.model import Parameter, Space


def write_space(method_file: Path) -> Path:
    """Write the space that is derived from the method of a file beside it; returns where."""
    if method_file.suffix != ".py":
        raise UserError(f"'{method_file}' is not the file of a method; give one, such as my_method.py")
    method = METHODS.resolve(str(method_file))
    kind = METHODS.load(method)
    file = method_file.expanduser().with_suffix(".yaml")
    if file.exists():
        raise UserError(f"{file} is already there; change it, or remove it first")
    space = derived_space(method, kind)
    left_out = [key for key in own_fields(kind) if key not in space.hyperparameters]
    try:
        file.write_text(space_text(space, left_out), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}; choose another folder") from None
    return file


def space_text(space: Space, left_out: list[str]) -> str:
    """The file of a space, with a comment about what it holds and about the fields that it leaves out."""
    lines = [
        "# Derived from the fields of the method; change it as you like. `wide` is uniform, log_uniform or",
        "# int with two ends, or choice with all values. `paper: [...]` adds what a paper prints, together",
        '# with where: `source: "Table 5"`.',
    ]
    if left_out:
        lines.append(f"# Not searched, since type and default give no range: {', '.join(left_out)}.")
    lines.append(f"method: {space.method}")
    for heading in ("hyperparameters", "training"):
        entries: dict[str, Parameter] = getattr(space, heading)
        lines.append(f"{heading}:" if entries else f"{heading}: {{}}")
        lines += [f"  {key}: {_entry(parameter)}" for key, parameter in entries.items()]
    return "\n".join(lines) + "\n"


def _entry(parameter: Parameter) -> str:
    wide = {parameter.wide.kind: list(parameter.wide.values)}
    return _flow({"default": parameter.default, "wide": wide})


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).strip()
