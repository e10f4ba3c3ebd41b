"""The benchmarking harness: suites, data, engine, Ray Tune, tracking and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.contract import Report
    from methods.base import FedAlgorithm

__all__ = ["check"]


def check(method: str | type[FedAlgorithm], hyperparameters: Mapping[str, Any] | None = None) -> Report:
    """Hold a method to the contract: a class, the name of a method, or the path of a file with one."""
    from bench.contract import check as check_contract

    return check_contract(method, hyperparameters)
