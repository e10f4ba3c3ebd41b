"""The base of all parts of a configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, strict=True)]
"""One or more; not `true`, which Python takes for 1."""


def is_none(value: object) -> bool:
    """Whether a setting is not given, and so is left out of the canonical configuration."""
    return value is None


def is_zero(value: object) -> bool:
    """Whether a setting has the value 0 that it has when it is not given."""
    return value == 0


class Section(BaseModel):
    """A part of a configuration: frozen, without unknown keys, NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
