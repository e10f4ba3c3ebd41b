"""Cells that differ in numbers alone, as one with tensors in place of these numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from pydantic import BaseModel
from torch import Tensor

from methods.base import FedAlgorithm, Task
from methods.core.optimisers import Optimiser
from methods.core.optional import separates_rounds

Path: TypeAlias = tuple[str, ...]
"""Names of fields, from the outside to the inside."""


class AlikeError(ValueError):
    """Cells that differ in more than numbers."""


class Setting(NamedTuple):
    """What may differ between cells that are computed together."""

    method: FedAlgorithm
    optimiser: Optimiser

    @classmethod
    def of(cls, method: FedAlgorithm, task: Task) -> Setting:
        return cls(_without_optimiser(method), task.optimiser)

    def in_rounds(self) -> Setting:
        """Without what makes no difference to rounds, as far as the method says."""
        method: Any = self.method
        return self._replace(method=method.in_rounds()) if separates_rounds(type(self.method)) else self

    def makes_as(self, other: Setting) -> bool:
        """Whether the method promises to make the same samples as another that it fits together with."""
        if not separates_rounds(type(self.method)):
            return self.method == other.method
        numbers = Variation.among([self, other]).numbers.items()
        changed = self
        for path, (_, value) in numbers:
            changed = with_number(changed, path, value)
        return changed.method == other.method


class Variation(NamedTuple):
    """The numbers in which settings differ: path → one value per setting."""

    numbers: dict[Path, list[float]]

    @classmethod
    def among(cls, settings: Sequence[Setting]) -> Variation:
        """An AlikeError if anything but numbers differs in rounds; whole numbers count as something else."""
        return cls(dict(_differences([setting.in_rounds() for setting in settings], ())))

    def tensors(self, like: Tensor) -> list[Tensor]:
        """One tensor per path, of the kind and on the device of a parameter."""
        return [
            torch.tensor(values, dtype=like.dtype, device=like.device) for values in self.numbers.values()
        ]

    def applied(self, setting: Setting, tensors: Sequence[Tensor]) -> Setting:
        """One of the settings with these tensors in place of its numbers."""
        for path, tensor in zip(self.numbers, tensors, strict=True):
            setting = _replaced(setting, path, tensor)
        return setting


def with_number(setting: Setting, path: Path, value: float) -> Setting:
    """The setting with another value at this path."""
    changed: Setting = _replaced(setting, path, value)
    return changed


def _without_optimiser(method: FedAlgorithm) -> FedAlgorithm:
    """The method with its own optimiser left out: the one its clients use is the task's."""
    inside = getattr(method, "inner", None)
    inner = {"inner": _without_optimiser(inside)} if isinstance(inside, FedAlgorithm) else {}
    return method.model_copy(update={"optimiser": None, **inner})


def _differences(objects: Sequence[Any], path: Path) -> Iterator[tuple[Path, list[float]]]:
    first = objects[0]
    if all(each == first for each in objects):
        return
    if all(type(each) is float for each in objects):
        yield path, list(objects)
    elif isinstance(first, (BaseModel, Setting)) and all(type(each) is type(first) for each in objects):
        for name in first._fields if isinstance(first, Setting) else type(first).model_fields:
            yield from _differences([getattr(each, name) for each in objects], (*path, name))
    else:
        raise AlikeError(f"{'.'.join(path)} differs")


def _replaced(base: Any, path: Path, value: Any) -> Any:
    name, *rest = path
    inside = _replaced(getattr(base, name), tuple(rest), value) if rest else value
    return (
        base._replace(**{name: inside})
        if isinstance(base, Setting)
        else base.model_copy(update={name: inside})
    )
