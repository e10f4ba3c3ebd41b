"""The hyperparameters in which cells of a stack differ: floats that are tensors with a value per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from pydantic import BaseModel
from torch import Tensor

from methods.base import FedAlgorithm
from methods.core.hyperparameters import Role, role_of
from methods.core.optimisers import Optimiser


def numbers_of(method: BaseModel) -> dict[tuple[str, ...], float]:
    """The hyperparameters that may be tensors with a value per cell: floats without a role.

    Names of fields, from the outside to the inside, → value; with those of optimisers and methods inside.
    """
    return {path: value for path, value, role in _fields(method) if type(value) is float and role is None}


def sample_settings(method: BaseModel) -> dict[tuple[str, ...], Any]:
    """The hyperparameters that rounds do not depend on."""
    return {path: value for path, value, role in _fields(method) if role is Role.SAMPLES}


def fixed_settings(method: BaseModel) -> dict[tuple[str, ...], Any]:
    """What is the same in all cells that are computed together: everything else, and the classes."""
    others = numbers_of(method).keys() | sample_settings(method).keys()
    return {
        path: type(value) if isinstance(value, BaseModel) and role is None else value
        for path, value, role in _fields(method)
        if path not in others
    }


def _fields(
    model: BaseModel, path: tuple[str, ...] = (), role: Role | None = None
) -> Iterator[tuple[tuple[str, ...], Any, Role | None]]:
    """A method and all its hyperparameters, each with its role; what has a role is not looked into."""
    yield path, model, role
    if isinstance(model, BaseModel) and role is None:
        for name, its_role in _roles(type(model)).items():
            yield from _fields(getattr(model, name), (*path, name), its_role)


@cache
def _roles(kind: type[BaseModel]) -> dict[str, Role | None]:
    return {name: role_of(field) for name, field in kind.model_fields.items()}


def setting(method: FedAlgorithm, optimiser: Optimiser | None) -> FedAlgorithm:
    """The method with the optimiser that its clients use, and none in methods inside it."""
    inside = getattr(method, "inner", None)
    inner = {"inner": setting(inside, None)} if isinstance(inside, FedAlgorithm) else {}
    return method.model_copy(update={"optimiser": optimiser, **inner})


def differing_numbers(settings: Sequence[FedAlgorithm], like: Tensor) -> dict[tuple[str, ...], Tensor]:
    """The numbers in which methods differ that are the same otherwise: name → the values in all of them.

    `like`: a tensor of the kind and on the device that they are for.
    """
    if len(settings) == 1:
        return {}
    numbers = [numbers_of(each) for each in settings]
    by_name = {path: [of_one[path] for of_one in numbers] for path in numbers[0]}
    return {
        path: torch.tensor(values, dtype=like.dtype, device=like.device)
        for path, values in by_name.items()
        if any(each != values[0] for each in values)
    }


def with_values(model: Any, values: Mapping[tuple[str, ...], Any]) -> Any:
    """The method with these values, or tensors, of some of its hyperparameters."""
    for (name, *inside), value in values.items():
        changed = with_values(getattr(model, name), {tuple(inside): value}) if inside else value
        model = model.model_copy(update={name: changed})
    return model
