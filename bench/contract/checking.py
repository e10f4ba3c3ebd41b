"""Holding a method to the contract. Importing this needs no torch."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.contract.pass_cache import VERSION, record
from bench.contract.report import Report, Verdict
from bench.suite.methods import METHODS
from bench.validation import validated

if TYPE_CHECKING:
    from methods.base import FedAlgorithm

__all__ = ["VERSION", "check"]


def check(
    method: str | type[FedAlgorithm], hyperparameters: Mapping[str, Any] | None = None, remember: bool = True
) -> Report:
    """Apply every rule of the contract to a method: a name, the path of a file, or a class.

    The outcome is remembered for `standing` until the method's code changes, unless `remember` is off or
    other hyperparameters than the defaults were asked for.
    """
    from bench.contract.method_under_test import MethodUnderTest
    from bench.contract.rules import RULES

    start = time.perf_counter()
    name = METHODS.resolve(method)
    kind = METHODS.load(name)
    if hyperparameters:
        validated(kind, hyperparameters, f"method '{name}'")
    subject = MethodUnderTest(kind, hyperparameters)
    verdicts: list[Verdict] = []
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "There is a performance drop", UserWarning
        )  # of vmap, in tiny models
        for rule in RULES:
            if rule.runs_it and _does_not_run(verdicts):
                verdicts.append(Verdict(rule.name, rule.demand, not_applied="the method does not run"))
            else:
                verdicts.append(rule.applied_to(subject))
    runs = not _does_not_run(verdicts)
    seconds = time.perf_counter() - start
    report = Report(subject.name, tuple(verdicts), (subject.model or "") if runs else "", seconds)
    if remember and not hyperparameters:
        record(name, report)
    return report


def _does_not_run(verdicts: list[Verdict]) -> bool:
    """Whether the rule that runs the method, or one that it rests on, has failed."""
    return any(verdict.findings for verdict in verdicts if verdict.rule in BASIC)


BASIC = ("rounds",)
