"""All methods by name: the files of `methods/`, and those that other packages register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.registry import Registry

if TYPE_CHECKING:
    from methods.base import FedAlgorithm


def _base() -> type[FedAlgorithm]:
    from methods.base import FedAlgorithm

    return FedAlgorithm


METHODS: Registry[FedAlgorithm] = Registry("methods", group="bench.methods", kind="method", base=_base)
