"""Methods as Python gives them, as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bench.errors import UserError
from bench.suite.methods import METHODS
from bench.suite.model import MethodEntry
from methods.base import FedAlgorithm

MethodLike: TypeAlias = str | type[FedAlgorithm] | FedAlgorithm
"""A name, the path of a file, a class, or an object with hyperparameters of its own."""


@dataclass(frozen=True)
class _Row:
    name: str
    label: str
    settings: dict[str, Any]


def rows_of(methods: Sequence[MethodLike]) -> list[str | MethodEntry]:
    """Names stay names; classes and objects become rows, told apart by their hyperparameters if need be."""
    if isinstance(methods, str):
        raise UserError(f"methods={methods!r}: give a list, such as ['{methods}']")
    found = [each if isinstance(each, str) else _row(each) for each in methods]
    labels = Counter(row.label for row in found if isinstance(row, _Row))
    return [row if isinstance(row, str) else _entry(row, labels[row.label] > 1) for row in found]


def _row(method: type[FedAlgorithm] | FedAlgorithm) -> _Row:
    if isinstance(method, FedAlgorithm):
        kind = type(method)
        return _Row(METHODS.register(kind), kind.label, method.model_dump(mode="json", exclude_unset=True))
    return _Row(METHODS.register(method), method.label, {})


def _entry(row: _Row, ambiguous: bool) -> MethodEntry:
    told = ", ".join(f"{key}={value}" for key, value in row.settings.items()) or "default"
    return MethodEntry(name=row.name, label=f"{row.label} ({told})" if ambiguous else None, set=row.settings)
