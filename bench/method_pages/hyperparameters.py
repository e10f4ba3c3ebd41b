"""What a method's class and its search space say about each of its hyperparameters, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bench.errors import UserError
from bench.search.space import describe_distribution
from reports.site import Hyperparameter

if TYPE_CHECKING:
    from search_spaces.model import Parameter

BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
}
NAMES = {"number": "a number", "integer": "a whole number", "boolean": "true or false", "string": "a text"}


def hyperparameters_of(name: str, kind: type[BaseModel]) -> tuple[Hyperparameter, ...]:
    """One entry per field of the class, in its order."""
    searched = _searched(name)
    schema = kind.model_json_schema()
    return tuple(
        Hyperparameter(
            name=key,
            default=_default(field.default),
            meaning=" ".join((field.description or "").split()),
            allowed=allowed(schema["properties"][key], schema),
            paper=_described({name: each for name, each in searched.items() if each.paper}, key, _printed),
            searched=_described(searched, key, lambda each: describe_distribution(each.wide)),
        )
        for key, field in kind.model_fields.items()
    )


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
    """Dotted keys → what a search may try; empty for a method without a search space."""
    from search_spaces.spaces import load_space

    try:
        space = load_space(name)
    except UserError:
        return {}
    return {**space.hyperparameters, **space.training}


def _described(searched: dict[str, Parameter], key: str, words: Any) -> str:
    """The words for a key itself, or for the keys inside it, each after its name."""
    if key in searched:
        return str(words(searched[key]))
    within = f"{key}."
    inside = {name.removeprefix(within): each for name, each in searched.items() if name.startswith(within)}
    return ", ".join(f"{name}: {words(each)}" for name, each in inside.items())


def _printed(parameter: Parameter) -> str:
    """The paper's values and where they are printed."""
    return f"{', '.join(map(_text, parameter.paper))} — {parameter.source}"


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        settings = value.model_dump(mode="json", exclude_defaults=True)
        return ", ".join(f"{key} = {_text(item)}" for key, item in settings.items()) or "its defaults"
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
