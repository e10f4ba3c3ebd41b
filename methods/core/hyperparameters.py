"""How a method declares its hyperparameters, beyond their types and bounds."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pydantic import Field
from pydantic.fields import FieldInfo


class Role(Enum):
    """What a hyperparameter is where cells with different values of it are computed together.

    Without a role, a float becomes a tensor with a value per cell, and anything else splits the stack: cells
    with different values are computed apart. A role is part of the annotation:

        share: Annotated[float, Role.BRANCH] = Field(default=0.1, gt=0)
    """

    BRANCH = "branch"
    """A float that decides an `if`, a count or a shape: it splits the stack, too."""
    SAMPLES = "samples"
    """Only samples (`training_samples`) and exchanges before round 1 depend on it, and no round does: cells
    with different values are one stack."""


def role_of(field: FieldInfo) -> Role | None:
    """The role that a field is declared with."""
    return next((each for each in field.metadata if isinstance(each, Role)), None)


def option(default: Any, **bounds: Any) -> Any:
    """A hyperparameter that is no part of a cell's identity at its default, where it changes nothing.

    So the cells that were finished before it existed keep their names.
    """
    return Field(default=default, exclude_if=lambda value: value == default, **bounds)
