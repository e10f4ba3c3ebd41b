"""What can be said about a method without running it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from bench.contract.method_under_test import MethodUnderTest
from bench.contract.rule import Rule


def _declaration(subject: MethodUnderTest) -> Iterator[str]:
    kind = subject.declared
    if missing := sorted(subject.kind.__abstractmethods__):
        yield f"{kind.__name__} does not define {', '.join(missing)}"
    label = vars(subject.kind).get("label")
    if not (isinstance(label, str) and label.strip()):
        yield f'{kind.__name__} has no label of its own: set label = "…", the method\'s name in tables'
    if not isinstance(subject.kind.version, int) or subject.kind.version < 1:
        yield f"version is {subject.kind.version!r}, but must be a whole number from 1"
    if not _described(kind):
        yield (
            f"neither {kind.__name__} nor its file has a docstring: "
            "say there what the method does and which paper it follows"
        )


def _described(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    of_file = module.__doc__ if module is not None and kind.__module__ != "__main__" else None
    return any(text and text.strip() for text in (vars(kind).get("__doc__"), of_file))


def _hyperparameters(subject: MethodUnderTest) -> Iterator[str]:
    kind = subject.kind
    if required := [name for name, each in kind.model_fields.items() if each.is_required()]:
        yield f"{', '.join(required)} has no default: give every hyperparameter one"
        return
    try:
        usual = kind()
    except ValidationError as error:
        yield f"its defaults are refused: {_reason(error)}"
        return
    if not _refuses(kind, {"no_such_thing": 1}):
        yield 'an unknown hyperparameter is accepted: keep extra="forbid" in model_config'
    for name in kind.model_fields:
        try:
            setattr(usual, name, getattr(usual, name))
        except ValidationError:
            continue
        yield f"'{name}' can be changed after the object is made: keep frozen=True in model_config"
    for name, value in _beyond_bounds(kind):
        if not _refuses(kind, {name: value}):
            yield f"{name} = {value} is accepted, although it is outside the declared bounds or not finite"
    try:
        again = kind.model_validate(usual.model_dump(mode="json"))
    except ValidationError as error:
        yield f"its defaults, written to a record and read again, are refused: {_reason(error)}"
        return
    if again.model_dump(mode="json") != usual.model_dump(mode="json"):
        yield "its defaults change when they are written to a record and read again"


def _beyond_bounds(kind: type[Any]) -> list[tuple[str, Any]]:
    """Values that no hyperparameter may take, by the schema of the class."""
    wrong: list[tuple[str, Any]] = []
    for name, schema in kind.model_json_schema()["properties"].items():
        for part in (schema, *schema.get("anyOf", ())):
            wrong += [(name, part["minimum"] - 1)] if "minimum" in part else []
            wrong += [(name, part["maximum"] + 1)] if "maximum" in part else []
            wrong += [(name, part[end]) for end in ("exclusiveMinimum", "exclusiveMaximum") if end in part]
            wrong += [(name, float("nan")), (name, float("inf"))] if part.get("type") == "number" else []
            wrong += [(name, "none of these")] if "enum" in part else []
    return wrong


def _refuses(kind: type[Any], values: dict[str, Any]) -> bool:
    try:
        kind(**values)
    except ValidationError:
        return True
    return False


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))} = {first['input']!r}: {first['msg']}"


DECLARATION = Rule(
    "declaration",
    "The class is complete, has a label of its own, and a docstring says what it does.",
    "The interface",
    _declaration,
    runs_it=False,
)
HYPERPARAMETERS = Rule(
    "hyperparameters",
    "Hyperparameters have defaults, keep their bounds and cannot be changed; unknown ones are refused.",
    "Hyperparameters",
    _hyperparameters,
    runs_it=False,
)
