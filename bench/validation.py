"""What is wrong with the user's values, as one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from bench.errors import UserError, nearest

M = TypeVar("M", bound=BaseModel)

LONGEST = 200
"""Characters of a wrong value in a sentence about it."""


def validated(model: type[M], values: Mapping[str, Any], where: str) -> M:
    """The model made from the values; the first thing wrong becomes a UserError that names key and value."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error, model)}") from None


def validated_union(union: Any, values: Mapping[str, Any], where: str) -> Any:
    """The same for a union of models that a key tells apart."""
    try:
        return TypeAdapter(union).validate_python(dict(values))
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error, union)}") from None


def _sentence(error: ValidationError, model: Any) -> str:
    # An unknown key comes first: a misspelt one usually also counts as missing.
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *outer, last = first["loc"]
        return f"unknown key '{key}'; {nearest(str(last), _keys_at(model, outer))}"
    if first["type"] == "missing":
        return f"key '{key}' is missing; give it a value"
    if first["type"].startswith("union_tag"):
        return _which_kind(first, key)
    if first["type"] in ("tuple_type", "list_type"):
        return f"{key} = {_shown(first['input'])}: give a list"
    reason = first["msg"].removeprefix("Value error, ")
    reason = reason[:1].lower() + reason[1:]
    return f"{key} = {_shown(first['input'])}: {reason}" if key else reason


def _shown(value: Any) -> str:
    """As the user wrote it, as far as that fits into a sentence."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _which_kind(problem: ErrorDetails, key: str) -> str:
    """For a union of models, where the key that tells them apart is missing or has an unknown value."""
    details = problem["ctx"]
    discriminator = ".".join(filter(None, (key, details["discriminator"].strip("'"))))
    if problem["type"] == "union_tag_not_found":
        return f"key '{discriminator}' is missing; give it a value"
    known = [tag.strip(" '") for tag in details["expected_tags"].split(",")]
    return f"{discriminator} = {_shown(details['tag'])}: {nearest(details['tag'], known)}"


def _keys_at(kind: Any, path: Sequence[int | str]) -> list[str]:
    """The keys that are allowed at a place inside nested models, lists and unions of them."""
    if path and isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(str(path[0]))
        return _keys_at(field.annotation, path[1:]) if field else []
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return list(kind.model_fields)
    rest = path[1:] if path and isinstance(path[0], int) else path
    members = [member for member in get_args(kind) if member is not type(None)]
    tagged = [m for m in members if rest and _has_tag(m, str(rest[0]))]
    if tagged:
        return _keys_at(tagged[0], rest[1:] if isinstance(tagged[0], type) else rest)
    return [key for member in members for key in _keys_at(member, rest)]


def _has_tag(kind: Any, tag: str) -> bool:
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return any(_has_tag(member, tag) for member in get_args(kind))
    return any(tag in get_args(field.annotation) for field in kind.model_fields.values())
