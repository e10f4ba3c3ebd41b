"""A method in full: its citation and equations, and what each of its hyperparameters means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from bench.errors import UserError
from bench.search.space import describe_distribution

if TYPE_CHECKING:
    from rich.table import Table

    from search_spaces.spaces import Parameter

BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
}
NAMES = {"number": "a number", "integer": "a whole number", "boolean": "true or false", "string": "a text"}


def hyperparameter_table(name: str, kind: type[BaseModel]) -> Table:
    """One row per hyperparameter: default, allowed values, the paper's, the search range and the meaning."""
    from rich.box import SIMPLE
    from rich.table import Table

    searched = _searched(name)
    grid = Table(box=SIMPLE, pad_edge=False, show_lines=False)
    grid.add_column("hyperparameter", no_wrap=True, style="bold")
    grid.add_column("default", no_wrap=True)
    grid.add_column("allowed")
    grid.add_column("paper")
    grid.add_column("search range")
    grid.add_column("meaning", ratio=1)
    for key, field in kind.model_fields.items():
        parameter = searched.get(key)
        grid.add_row(
            key,
            _default(field),
            allowed(kind.model_json_schema()["properties"][key], kind.model_json_schema()),
            ", ".join(map(_text, parameter.paper)) if parameter else "",
            describe_distribution(parameter.wide) if parameter else "not searched",
            " ".join((field.description or "").split()),
        )
    return grid


def allowed(schema: dict[str, Any], root: dict[str, Any]) -> str:
    """What a JSON schema allows, in words."""
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rpartition("/")[2]], **schema}
    if "enum" in schema or "const" in schema:
        return ", ".join(map(_text, schema.get("enum", [schema.get("const")])))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [allowed(option, root) for option in options if option.get("type") != "null"]
        empty = [option for option in options if option.get("type") == "null"]
        return " or ".join([*dict.fromkeys(kinds), *(["none"] if empty else [])])
    bounds = [text.format(f"{schema[key]:g}") for key, text in BOUNDS.items() if key in schema]
    if schema.get("type") == "object":
        return str(schema.get("title", "settings")).lower()
    kind = NAMES.get(schema.get("type", ""), schema.get("type", ""))
    return f"{kind} {' and '.join(bounds)}".strip()


def _searched(name: str) -> dict[str, Parameter]:
    from search_spaces.spaces import load_space

    try:
        space = load_space(name)
    except UserError:  # a method without a search space can be shown all the same
        return {}
    return dict(space.hyperparameters)


def _default(field: Any) -> str:
    from pydantic_core import PydanticUndefined

    if field.default is PydanticUndefined:
        return "required"
    value = field.default
    return "its defaults" if isinstance(value, BaseModel) else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
