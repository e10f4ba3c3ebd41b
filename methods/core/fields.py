"""Hyperparameters that were added to a method after it had results."""

from typing import Any

from pydantic import Field


def option(default: Any, **bounds: Any) -> Any:
    """A hyperparameter that is no part of a cell's identity at its default, where it changes nothing.

    So the cells that were finished before it existed keep their names.
    """
    return Field(default=default, exclude_if=lambda value: value == default, **bounds)
