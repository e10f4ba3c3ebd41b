"""The contract's small problems for tests, and the names of the methods to test."""

from __future__ import annotations

from typing import Any

import pytest

from bench.contract.fixtures import PLAIN, samples, tiny_task, with_infinite_inputs
from bench.contract.fixtures import tiny_problem as problem_of
from bench.contract.method_under_test import QUICK, MethodUnderTest
from bench.contract.nests import differing, flat, gaps
from bench.contract.runs import resumed, run, standing
from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from bench.engine.problem import Problem
from bench.suite.methods import METHODS, WRAPPERS
from methods.base import FedAlgorithm

__all__ = [
    "NORM_BATCH",
    "PLAIN",
    "accepted_model",
    "assert_close",
    "differing",
    "every_method",
    "flat",
    "in_one_process",
    "make_method",
    "quick",
    "resumed",
    "run",
    "samples",
    "standing",
    "tiny_problem",
    "tiny_task",
    "with_infinite_inputs",
    "wrapped",
]

NORM_BATCH = 5
"""Leaves no batch of one sample, which batch norm cannot take."""
INNER = ("fedavg", "scaffold", "moon")
"""With and without private state: a wrapper is tested around the first two of these that it accepts."""


def accepts(wrapper: str, inner: str) -> bool:
    try:
        METHODS.load(f"{wrapper}+{inner}")()
    except ValueError:
        return False
    return True


def wrapped() -> list[str]:
    return [
        f"{wrapper}+{inner}"
        for wrapper in WRAPPERS.names()
        for inner in [inner for inner in INNER if accepts(wrapper, inner)][:2]
    ]


every_method = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in (*METHODS.names(), *wrapped())],
)
"""Tests a new method without a line being written."""
in_one_process = pytest.mark.parametrize("kind", [LoopHost, StackedHost])


def make_method(name: str, **hyperparameters: Any) -> FedAlgorithm:
    return METHODS.load(name)(**quick(name) | hyperparameters)


def quick(name: str) -> dict[str, Any]:
    return {key: value for key, value in QUICK.items() if key in METHODS.load(name).model_fields}


def tiny_problem(method: FedAlgorithm, model: str | None = None, **how: Any) -> Problem:
    """By default on the first tiny model that the method accepts; a test of what it refuses is skipped."""
    try:
        return problem_of(method, model or accepted_model(method), **how)
    except ValueError as refusal:
        pytest.skip(f"{method.label} {refusal}")


def accepted_model(method: FedAlgorithm) -> str:
    """The first tiny model on which the method runs with plain SGD."""
    subject = MethodUnderTest(type(method), method.model_dump())
    assert subject.model is not None, subject.refused
    return subject.model


def assert_close(one: Any, other: Any, *, tolerance: float) -> None:
    assert gaps(one, other, tolerance) == {}
