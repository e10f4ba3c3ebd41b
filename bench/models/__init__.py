"""Models by name (one file per model in `architectures`), and a user's own models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from bench.models.choice import ModelChoice, from_module
from bench.registry import Registry

if TYPE_CHECKING:
    from bench.models.base import ModelSpec

__all__ = ["MODELS", "ModelChoice", "from_module", "model_options", "model_spec"]


def _base() -> type[ModelSpec]:
    from bench.models.base import ModelSpec

    return ModelSpec


MODELS: Registry[ModelSpec] = Registry(
    "bench.models.architectures", group="bench.models", kind="model", base=_base
)


def model_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a model in full: the name `timm:resnet18` stands for {name: timm, source: resnet18}."""
    if "name" not in options:
        raise UserError("model: key 'name' is missing; give it a value")
    name, colon, source = str(options["name"]).partition(":")
    return {**options, "name": name, "source": source} if colon else {**options, "name": name}


def model_spec(options: Mapping[str, Any]) -> ModelSpec:
    """The checked options of a model, from a mapping with its `name`."""
    from bench.validation import validated

    values = model_options(options)
    return validated(MODELS.load(values.pop("name")), values, "model").identified()
