"""The hyperparameters in which cells of a stack differ: floats that are tensors with a value per cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel
from torch import Tensor

from methods.base import FedAlgorithm
from methods.core.hyperparameters import Role, role_of
from methods.core.optimisers import Optimiser


class Hyperparameters(NamedTuple):
    """Those of a method, of its optimiser and of methods inside it, by what they are in a stack.

    Names of fields, from the outside to the inside, → value.
    """

    numbers: dict[tuple[str, ...], float]
    """Each may be a tensor with a value per cell."""
    fixed: dict[tuple[str, ...], Any]
    """The same in all cells that are computed together."""
    samples: dict[tuple[str, ...], Any]
    """Rounds do not depend on these."""

    @classmethod
    def of(cls, method: BaseModel) -> Hyperparameters:
        found = cls({}, {}, {})
        found._add(method, ())
        return found

    def _add(self, model: BaseModel, path: tuple[str, ...]) -> None:
        self.fixed[path] = type(model)
        for name, role in _roles(type(model)).items():
            value, here = getattr(model, name), (*path, name)
            if role is Role.SAMPLES:
                self.samples[here] = value
            elif isinstance(value, BaseModel):
                self._add(value, here)
            elif type(value) is float and role is None:
                self.numbers[here] = value
            else:
                self.fixed[here] = value


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
    numbers = [Hyperparameters.of(each).numbers for each in settings]
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
