"""A model as a Python object: its name and options, to be put into a suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ModelChoice:
    """A model's name and options, as the section `model` of a suite has them."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_config(self) -> dict[str, Any]:
        """The section `model` of a suite."""
        return {"name": self.name, **self.options}


def from_module(
    factory: Callable[..., nn.Module],
    *,
    classifier: str | None = None,
    projector: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> ModelChoice:
    """Your own model: a function, or a subclass of nn.Module, called as factory(input_shape, classes).

    It may be defined in a notebook or script; its source, and that of what it uses from there, is stored in
    the cache. `classifier` and `projector` are the dotted names of submodules, as in the model `file`, and
    `options` are further arguments of the factory. A module that is built already is refused: initial
    weights are drawn again for each seed.
    """
    from bench.user_code.models import keep_source
    from bench.user_code.source_text import standalone_source

    text = standalone_source(factory)
    given = {
        "path": str(keep_source(text)),
        "function": factory.__name__,
        "classifier": classifier,
        "projector": projector,
        "options": dict(options) if options else None,
    }
    return ModelChoice("file", {key: value for key, value in given.items() if value is not None})
