"""Whether a method, and the suite's training section, take every value of a search space."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from bench.config.cell import Training
from bench.errors import UserError, nearest
from bench.validation import validated, validated_union
from search_spaces.model import Parameter, Space


def check_space(space: Space, kind: type[BaseModel], where: str) -> None:
    """Show every value of a space to its method."""
    for key, parameter in space.hyperparameters.items():
        _check_hyperparameter(kind, key, parameter, where)
    for key, parameter in space.training.items():
        for value in parameter.extremes():
            _check_training(key, value, f"{where}, training")


def _check_hyperparameter(kind: type[BaseModel], key: str, parameter: Parameter, where: str) -> None:
    if key not in kind.model_fields:
        raise UserError(f"{where}: unknown hyperparameter '{key}'; {nearest(key, kind.model_fields)}")
    own = kind.model_fields[key].default
    if parameter.default != own:
        raise UserError(f"{where}: the default of {key} is {own} in the method but {parameter.default} here")
    for value in parameter.extremes():
        validated(kind, {key: value}, where)


def _check_training(key: str, value: Any, where: str) -> None:
    from methods.core.optimisers import Optimiser

    section: dict[str, Any] = {
        "rounds": 1,
        "epochs": 1,
        "batch_size": 1,
        "optimiser": {"name": "sgd", "lr": 1.0},
    }
    *path, last = key.split(".")
    target = section
    for part in path:
        target = target.setdefault(part, {})
    target[last] = value
    validated(Training, section, where)
    validated_union(Optimiser, section["optimiser"], f"{where}: optimiser")
