"""What the source of a method says about it, for pages that are made without importing it."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bench.suite.methods import AROUND, METHODS, WRAPPERS
from reports.site import Hyperparameter, MethodInfo


def method_info(name: str) -> MethodInfo:
    """Label, docstring and hyperparameters; of a wrapper's method, the docstrings of both."""
    kind = METHODS.load(name)
    wrapper, plus, inner = name.partition(AROUND)
    sources: list[type] = [WRAPPERS.load(wrapper), METHODS.load(inner)] if plus else [kind]
    texts = [(inspect.getdoc(inspect.getmodule(source)) or "").strip() for source in sources]
    return MethodInfo(
        name=name,
        label=kind.label,
        summary=texts[0].partition("\n")[0],
        text="\n\n".join(texts),
        hyperparameters=tuple(
            Hyperparameter(key, _default(field.default), " ".join((field.description or "").split()))
            for key, field in kind.model_fields.items()
        ),
    )


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return (
            ", ".join(f"{key} = {item}" for key, item in value.model_dump(mode="json").items()) or "its own"
        )
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
